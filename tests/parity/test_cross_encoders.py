"""Cross-encoders: scores of pairs are those of sentence-transformers, and ours load there."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from sentence_transformers import CrossEncoder
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.cross_encoder.modules import LogitScore
from sentence_transformers.sentence_transformer.modules import Pooling

import orrery
from orrery.cli.program import run
from orrery.errors import ModelFileError, UsageError
from orrery.families import load_family
from orrery.language_model.model import LanguageModel
from orrery.text.special import train_framed
from orrery.text.tokenizer import Tokenizer
from serving_toy import post, serving
from tests.parity.oracle import randomise

WORDS = "the cat sat on a mat and the dog lay by the door while it rained"
QUERIES = ["the cat", f"{WORDS} " * 3, "", "UPPER Cat", "émigré 日本"]
DOCUMENTS = ["sat on a mat", WORDS, f"{WORDS} " * 8, "", "  two  spaces ", "Dog", "é 日本 \U0001f642", "a"]
PAIRS = [(query, document) for query in QUERIES for document in DOCUMENTS if query or document]
BOUND = 1e-6
BERT_LIKE = ("bert", "electra", "distilbert", "albert", "deberta_v2", "modernbert")
ROBERTA_LIKE = ("roberta", "xlm_roberta")
SEGMENTED = ("bert", "electra", "albert")
LENGTH = 24


def long(*values: Any) -> Any:
    """Return a case of a test of which others are cheaper to run each time."""
    return pytest.param(*values, marks=pytest.mark.long)


def tokenizer_of(kind: str) -> Tokenizer:
    """Return a small tokenizer with the special tokens that such a family has."""
    if kind in ROBERTA_LIKE:
        return train_framed("byte_bpe", [WORDS] * 20, 400, "roberta")
    return train_framed("wordpiece", [WORDS] * 20, 90, "bert", lowercase=True)


def tell(place: Path, file: str, **said: Any) -> None:
    """Add keys to a JSON file of a folder."""
    content = json.loads((place / file).read_text()) if (place / file).is_file() else {}
    (place / file).write_text(json.dumps({**content, **said}))


def published(place: Path, kind: str = "bert", labels: int = 1, length: int | None = LENGTH, **config: Any) -> Path:
    """Save a tiny classifier of transformers' with random numbers and its tokenizer."""
    tokenizer = tokenizer_of(kind)
    sizes = {"vocab_size": tokenizer.size, "max_position_embeddings": 64, "num_labels": labels, "pad_token_id": 0}
    told = {**load_family(kind).TINY, **sizes, **config}
    shape = transformers.AutoConfig.for_model(kind.replace("_", "-"), **told)
    model = transformers.AutoModelForSequenceClassification.from_config(shape).eval()
    randomise(model, seed=1)
    model.save_pretrained(place)
    tokenizer.save(place)
    if kind in SEGMENTED:  # published ones say so by their class
        tell(place, "tokenizer_config.json", model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    if length is not None:
        tell(place, "tokenizer_config.json", model_max_length=length)
    return place


def loaded(place: Path) -> LanguageModel:
    return orrery.load(place, "cpu", say=str)


def theirs(place: Path) -> CrossEncoder:
    return CrossEncoder(str(place), device="cpu", local_files_only=True)


def distance(lm: LanguageModel, model: CrossEncoder, **asked: Any) -> float:
    """Return how far the scores of all pairs are apart, at most, over the size of theirs."""
    ours = lm.score_pairs(PAIRS, **asked)
    prompts = {"prompt_name": asked["prompt"]} if asked.get("prompt") else asked and {"prompt": ""}
    other = model.predict(PAIRS, convert_to_tensor=True, **(prompts or {}))
    assert ours.shape == other.shape
    return float((ours - other).abs().max() / max(1.0, float(other.abs().max())))


OFTEN = ("bert", "albert", "deberta_v2", "modernbert", "roberta")


@pytest.mark.parametrize("kind", [kind if kind in OFTEN else long(kind) for kind in (*BERT_LIKE, *ROBERTA_LIKE)])
def test_pairs_have_their_scores(kind: str, tmp_path: Path) -> None:
    place = published(tmp_path / kind, kind)
    lm, model = loaded(place), theirs(place)
    assert distance(lm, model) < BOUND
    ranked = lm.rank("the cat", DOCUMENTS)
    expected = model.rank("the cat", DOCUMENTS)
    assert [one.index for one in ranked] == [one["corpus_id"] for one in expected]
    assert [one.score for one in ranked] == pytest.approx([one["score"] for one in expected], abs=BOUND)


def test_token_types_are_told_where_transformers_tells_them(tmp_path: Path) -> None:
    place = published(tmp_path / "folder")
    config = json.loads((place / "tokenizer_config.json").read_text())
    del config["model_input_names"]  # as transformers 5 saves a tokenizer that is of no family
    config = {**config, "tokenizer_class": "TokenizersBackend", "backend": "tokenizers"}
    (place / "tokenizer_config.json").write_text(json.dumps(config))
    assert distance(loaded(place), theirs(place)) < BOUND


SAID = {
    "nothing": {},
    "a section": {"sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity", "version": "4.1.0"}},
    "the old key": {"sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity"},
    "a short name": {"sentence_transformers": {"activation_fn": "torch.nn.Tanh"}},
    "both": {
        "sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"},
        "sbert_ce_default_activation_function": "torch.nn.modules.linear.Identity",
    },
}


@pytest.mark.parametrize(
    ("said", "labels"),
    [("nothing", 1), ("the old key", 1), ("a section", 3), *(long(said, n) for n in (1, 3) for said in SAID)],
)
def test_what_makes_a_score_of_a_logit_is_in_the_folder(said: str, labels: int, tmp_path: Path) -> None:
    place = published(tmp_path / "folder", labels=labels)
    tell(place, "config.json", **SAID[said])
    lm, model = loaded(place), theirs(place)
    assert distance(lm, model) < BOUND
    assert (lm.pairing.activation is None) is (said == "nothing")
    lm.save(tmp_path / "again")
    assert torch.equal(loaded(tmp_path / "again").score_pairs(PAIRS), lm.score_pairs(PAIRS))
    assert distance(lm, theirs(tmp_path / "again")) < BOUND
    if labels > 1:
        with pytest.raises(UsageError, match="3 numbers"):
            lm.rank("the cat", DOCUMENTS)


@pytest.mark.parametrize(("length", "side"), [(9, "right"), (9, "left"), long(16, "left"), long(None, "right")])
def test_pairs_that_are_longer_than_a_row_are_cut_as_there(side: str, length: int | None, tmp_path: Path) -> None:
    place = published(tmp_path / "folder", length=length)
    tell(place, "tokenizer_config.json", truncation_side=side)
    lm, model = loaded(place), theirs(place)
    assert distance(lm, model) < BOUND
    assert any(one.cut for one in lm.pair_scores(PAIRS))
    with pytest.raises(UsageError, match="longer than"):
        lm.score_pairs(PAIRS, truncation=False)


def test_batches_change_nothing(tmp_path: Path) -> None:
    lm = loaded(published(tmp_path / "folder"))
    pairs = PAIRS[::3]
    one, many = lm.score_pairs(pairs, batch_size=1), lm.score_pairs(pairs, batch_size=len(pairs))
    assert (one - many).abs().max() < BOUND
    turned = lm.score_pairs((pair for pair in pairs[::-1]), batch_size=3)
    assert (turned.flip(0) - one).abs().max() < BOUND
    assert lm.score_pairs([]).shape == (0,)
    assert lm.rank("the cat", []) == []
    assert [one.document for one in lm.rank("the cat", ["a", "a", "a"])] == ["a", "a", "a"]
    assert [one.index for one in lm.rank("the cat", ["a", "a", "a"], top_n=2)] == [0, 1]


def newest(place: Path, kind: str) -> CrossEncoder:
    """Return a cross-encoder as sentence-transformers 5.4 and later save it, from that folder."""
    said: dict[str, Any] = {}
    if kind == "chain":
        torch.manual_seed(0)
        reader = Transformer(str(published(place / "bare")), max_seq_length=20)
        width = reader.get_embedding_dimension()
        first = Dense(width, 9, activation_function=torch.nn.GELU())
        last = Dense(9, 1, activation_function=torch.nn.Identity(), module_output_name="scores")
        for dense in (first, last):
            torch.nn.init.normal_(dense.linear.weight, std=0.5)
        model = CrossEncoder(modules=[reader, Pooling(width, "mean"), first, last], device="cpu")
    else:
        if kind == "prompts":
            said = {"prompts": {"query": "the dog: "}, "default_prompt_name": "query"}
        if kind == "a function":
            said = {"activation_fn": torch.nn.Identity()}
        model = CrossEncoder(str(published(place / "bare")), max_length=20, device="cpu", local_files_only=True, **said)
    model.save_pretrained(str(place / "folder"))
    return theirs(place / "folder")


@pytest.mark.parametrize("kind", ["prompts", "chain", long("plain"), long("a function")])
def test_folders_of_the_newest_versions_there_and_back(kind: str, tmp_path: Path) -> None:
    model = newest(tmp_path, kind)
    lm = loaded(tmp_path / "folder")
    assert distance(lm, model) < BOUND
    assert lm.pairing.length == 20
    if kind == "prompts":
        assert distance(lm, model, prompt="query") < BOUND
        assert distance(lm, model, prompt="") < BOUND
        with pytest.raises(UsageError, match="no prompt is called 'x'"):
            lm.rank("a", ["b"], prompt="x")
    lm.save(tmp_path / "again")
    lm.save(tmp_path / "own", layout="own")
    names = ["again", "own"]
    if kind in ("chain", "prompts"):
        assert run(["import", str(tmp_path / "folder"), str(tmp_path / "imported")]) == 0
        assert run(["export", str(tmp_path / "folder"), "hf", str(tmp_path / "exported")]) == 0
        names += ["imported", "exported"]
    for name in names:
        assert torch.equal(loaded(tmp_path / name).score_pairs(PAIRS), lm.score_pairs(PAIRS)), name
        if name != "own":
            assert distance(lm, theirs(tmp_path / name)) < BOUND, name


TEMPLATE = (
    "{% if messages[0].role == 'system' %}{{ messages[0].content }} | {% endif %}"
    "Q: {{ messages | selectattr('role', 'eq', 'query') | map(attribute='content') | first }}\n"
    "D: {{ messages | selectattr('role', 'eq', 'document') | map(attribute='content') | first }}\n"
    "{% if add_generation_prompt %}{{ mark }}fits: {% endif %}"
)


def decoder(place: Path, template: str | None = TEMPLATE) -> Path:
    """Save a tiny Llama whose vocabulary has yes and no, and whose template says a pair."""
    tokenizer = train_framed("byte_bpe", [f"{WORDS} yes no yes no Q: D: fits:"] * 20, 400, None)
    sizes = {"vocab_size": tokenizer.size, "max_position_embeddings": 64, "pad_token_id": 0}
    shape = transformers.AutoConfig.for_model("llama", **{**load_family("llama").TINY, **sizes})
    model = transformers.AutoModelForCausalLM.from_config(shape).eval()
    randomise(model, seed=1)
    model.save_pretrained(place)
    tokenizer.save(place)
    tell(place, "tokenizer_config.json", model_max_length=40, pad_token="<|endoftext|>")
    if template is not None:
        (place / "chat_template.jinja").write_text(template)
    return place


@pytest.mark.parametrize(("way", "no"), [("texts", None), ("messages", 7), long("texts", 7), long("messages", None)])
def test_decoders_are_read_by_their_next_token(way: str, no: int | None, tmp_path: Path) -> None:
    place = decoder(tmp_path / "bare", None if way == "texts" else TEMPLATE)
    asked = {"chat_template": {"add_generation_prompt": True, "mark": "it "}} if way == "messages" else None
    reader = Transformer(str(place), transformer_task="text-generation", processing_kwargs=asked)
    said = {"prompts": {"web": "the dog"}, "default_prompt_name": "web"} if way == "messages" else {}
    CrossEncoder(modules=[reader, LogitScore(5, no)], device="cpu", **said).save_pretrained(str(tmp_path / "folder"))
    model, lm = theirs(tmp_path / "folder"), loaded(tmp_path / "folder")
    assert distance(lm, model) < BOUND
    assert any(one.cut for one in lm.pair_scores(PAIRS))
    lm.save(tmp_path / "again")
    assert distance(lm, theirs(tmp_path / "again")) < BOUND
    assert torch.equal(loaded(tmp_path / "again").score_pairs(PAIRS), lm.score_pairs(PAIRS))


def test_a_decoder_whose_template_says_pairs_is_asked_for_yes_and_no(tmp_path: Path) -> None:
    place = decoder(tmp_path / "folder")
    lm = loaded(place)
    assert distance(lm, theirs(place)) < BOUND
    with pytest.raises(UsageError, match="nothing says how"):
        loaded(decoder(tmp_path / "plain", None)).rank("a", ["b"])


def bad(place: Path, change: str) -> None:
    match change:
        case "an unknown function":
            tell(place, "config_sentence_transformers.json", activation_fn="evil.module.Thing")
        case "tokens beyond the vocabulary":
            (place / "1_LogitScore").mkdir()
            (place / "1_LogitScore" / "config.json").write_text('{"true_token_id": 99999}')
            modules = json.loads((place / "modules.json").read_text())
            (place / "modules.json").write_text(
                json.dumps([*modules, {"type": "a.LogitScore", "path": "1_LogitScore"}])
            )
        case "an unknown module":
            modules = json.loads((place / "modules.json").read_text())
            (place / "modules.json").write_text(json.dumps([*modules, {"type": "a.Thing", "path": "1_Thing"}]))
        case "another cut":
            tell(place, "sentence_bert_config.json", processing_kwargs={"text": {"truncation": "only_second"}})
        case "no template":
            how = {"message": {"method": "forward", "method_output_name": "logits", "format": "flat"}}
            tell(place, "sentence_bert_config.json", modality_config=how)
        case "settings that are none":
            tell(place, "sentence_bert_config.json", processing_kwargs="x")


@pytest.mark.parametrize(
    "change",
    [
        "an unknown function", "tokens beyond the vocabulary", "an unknown module", "another cut", "no template",
        "settings that are none",
    ],
)  # fmt: skip
def test_a_damaged_folder_is_refused_by_what_is_wrong(change: str, tmp_path: Path) -> None:
    newest(tmp_path, "plain")
    bad(tmp_path / "folder", change)
    with pytest.raises(ModelFileError) as refused:
        loaded(tmp_path / "folder").score_pairs(PAIRS)
    assert refused.value.hint


def test_every_door_gives_the_same_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = published(tmp_path / "folder")
    lm = loaded(place)
    expected = [(one.index, one.score) for one in lm.rank("the cat", DOCUMENTS)]
    assert run(["rank", str(place), "the cat", *DOCUMENTS, "--json", "--device", "cpu"]) == 0
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(one["index"], one["score"]) for one in printed] == [(n, pytest.approx(s, abs=BOUND)) for n, s in expected]
    with serving(lm, "toy") as server:
        for path in ("/v1/rerank", "/v2/rerank", "/rerank"):
            documents = [*DOCUMENTS[:4], *({"text": text, "title": "x"} for text in DOCUMENTS[4:])]
            status, answer = post(server, {"model": "toy", "query": "the cat", "documents": documents}, path)
            assert status == 200, answer
            scored = [(one["index"], one["relevance_score"]) for one in answer["results"]]
            assert scored == [(n, pytest.approx(s, abs=BOUND)) for n, s in expected]
            assert [one["document"]["text"] for one in answer["results"]] == [DOCUMENTS[n] for n, _ in scored]
            assert answer["usage"]["total_tokens"] == sum(
                one.tokens for one in lm.pair_scores([("the cat", document) for document in DOCUMENTS])
            )
        body = {"model": "toy", "query": "the cat", "documents": DOCUMENTS, "return_documents": False}
        _, answer = post(server, {**body, "top_n": 2}, "/v1/rerank")
        assert [one["index"] for one in answer["results"]] == [n for n, _ in expected[:2]]
        assert not any(one.get("document") for one in answer["results"])
        for wrong, field in (
            ({"documents": []}, "documents"), ({"documents": "a"}, "documents"), ({"query": ""}, "query"),
            ({"documents": ["a", {"image": "x"}]}, "documents"), ({"top_n": -1}, "top_n"), ({"query": 3}, "query"),
            ({"max_tokens_per_doc": 5}, "max_tokens_per_doc"), ({"rank_fields": ["a"]}, "rank_fields"),
            ({"prompt_name": "x"}, None), ({"truncation": False, "documents": [WORDS * 9]}, "documents"),
        ):  # fmt: skip
            status, answer = post(server, {**body, **wrong}, "/v1/rerank")
            assert status == 400, (wrong, answer)
            assert field is None or str(answer["error"]["param"]).startswith(field), (wrong, answer)


def test_rows_with_queries_are_ranked_among_those_of_their_query(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = published(tmp_path / "folder")
    lm = loaded(place)
    rows = [{"q": query, "text": text} for text in ("the mat", "a dog", "", "door") for query in ("the cat", "rain")]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["rank", str(place), "--file", str(tmp_path / "rows.jsonl"), "--queries", "q", "--device", "cpu"]
    assert run([*words, "--json"]) == 0
    out, err = capsys.readouterr()
    assert "passed over: 2 of 8 rows (lines 5, 6)" in err
    printed = [json.loads(line) for line in out.splitlines()]
    texts = ["the mat", "a dog", "door"]
    expected = [(query, one.document) for query in ("the cat", "rain") for one in lm.rank(query, texts)]
    assert [(one["q"], one["text"]) for one in printed] == expected
    assert run([*words, "--top-n", "1"]) == 0
    assert [line.partition("  ")[2] or line for line in capsys.readouterr().out.splitlines()] == [
        "# the cat", expected[0][1], "# rain", expected[3][1],
    ]  # fmt: skip
    assert run(["rank", str(place), "--file", str(tmp_path / "rows.jsonl")]) == 2
    assert "there is no query" in capsys.readouterr().err
    assert run(["rank", str(published(tmp_path / "three", labels=3)), "a", "b"]) == 2
    assert "3 numbers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("task", "column", "value"), [("regression", "score", float), long("classification", "label", str)]
)
def test_a_model_trained_on_pairs_scores_them_there_too(task: str, column: str, value: Any, tmp_path: Path) -> None:
    """Numbers are given as they are, logits of classes too."""
    rows = [
        {"text": f"the cat {word}", "text_pair": f"a {other} dog", column: value(n % 2)}
        for n, (word, other) in enumerate(zip(WORDS.split() * 2, WORDS.split()[3:] + WORDS.split(), strict=False))
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["finetune", task, "--from", str(published(tmp_path / "base")), "--train", str(tmp_path / "pairs.jsonl")]
    assert run([*words, "--output", str(tmp_path / "run"), "--training.steps", "3"]) == 0
    lm = loaded(tmp_path / "run")
    assert lm.ranks is (task == "regression")
    assert distance(lm, theirs(tmp_path / "run" / "final")) < BOUND
    answers = orrery.pipeline("text-classification", lm, batch_size=4)
    if task == "regression":
        short = [PAIRS[0], PAIRS[3], PAIRS[5]]
        scored = answers([{"text": one, "text_pair": other} for one, other in short])
        assert [one["score"] for one in scored] == pytest.approx(lm.score_pairs(short).tolist(), abs=BOUND)


@pytest.mark.parametrize("begun", ["headless", pytest.param("reranker", marks=pytest.mark.long)])
def test_a_reranker_trained_on_its_logit_scores_pairs_there_too(begun: str, tmp_path: Path) -> None:
    """What is learnt is torch's loss on the logits of CrossEncoder, and a score is their sigmoid in both."""
    rows = [
        {"query": f"the cat {word}", "passage": f"a {word} dog", "label": n % 2}
        for n, word in enumerate(WORDS.split() * 2)
    ]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    base = published(tmp_path / "base", labels=1 if begun == "reranker" else 2)
    words = ["finetune", "regression", "--from", str(base), "--train", str(tmp_path / "pairs.jsonl")]
    words += ["--text", "query", "--pair", "passage", "--number", "label", "--objective.kind", "binary"]
    assert run([*words, "--output", str(tmp_path / "run"), "--training.steps", "3"]) == 0
    lm, other = loaded(tmp_path / "run"), theirs(tmp_path / "run" / "final")
    assert lm.ranks
    assert distance(lm, other) < BOUND
    assert bool(((lm.score_pairs(PAIRS) > 0) & (lm.score_pairs(PAIRS) < 1)).all())
    config = json.loads((tmp_path / "run" / "final" / "config.json").read_text())
    assert config.get("problem_type") != "regression"
