"""Folders of sentence-transformers: their vectors here, and ours there."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import LayerNorm, Pooling

import orrery
import orrery.models.sentence_vectors as vectors_of
from orrery.checkpoints.tensors import write_tensors
from orrery.cli.program import run
from orrery.errors import ModelFileError, UsageError
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.language_model.model import LanguageModel
from orrery.models.sentence_vectors import POOLINGS
from orrery.objectives.contrastive import Contrastive, info_nce
from orrery.text.special import train_framed
from orrery.text.tokenizer import Tokenizer
from serving_toy import post, serving
from tests.parity.oracle import randomise

WORDS = "the cat sat on a mat and the dog lay by the door while it rained"
TEXTS = [
    "the", "sat on a mat", "on a mat and the dog lay by", WORDS, f"{WORDS} " * 6, "UPPER Cat", "", "  two  spaces ",
    "émigré 日本",
]  # fmt: skip
BOUND = 2e-6


def folder(place: Path, family: str = "bert", **config: Any) -> Path:
    """Save a tiny encoder with random numbers, and a tokenizer with its special tokens."""
    tokenizer = train_framed("wordpiece", [WORDS] * 20, 90, "bert", lowercase=True)
    rules = load_family(family)
    config = {**rules.TINY, "vocab_size": tokenizer.size, "max_position_embeddings": 48, **config}
    model = rules.spec(config).build(0).eval()
    randomise(model, seed=1)
    save_model(place, model, family, config, tokenizer)
    return place


def theirs(
    place: Path, *steps: Any, length: int | None = None, pooling: Any = "mean", **said: Any
) -> SentenceTransformer:
    """Return a model of theirs over a folder of ours, with these steps behind it, and save it beside."""
    bare = folder(place / "bare")
    reader = Transformer(str(bare), max_seq_length=length)
    pool = Pooling(reader.get_embedding_dimension(), pooling_mode=pooling, **said.pop("pools", {}))
    model = SentenceTransformer(modules=[reader, pool, *steps], device="cpu", **said)
    model.save(str(place / "folder"))
    return SentenceTransformer(str(place / "folder"), device="cpu")


def distance(lm: LanguageModel, model: SentenceTransformer, **asked: Any) -> float:
    """Return how far the vectors of the texts are apart, at most, over the size of theirs."""
    ours = lm.embed(TEXTS, **asked)
    prompts = {"prompt_name" if asked["prompt"] else "prompt": asked["prompt"]} if "prompt" in asked else {}
    other = model.encode(TEXTS, convert_to_tensor=True, **prompts)
    return float((ours - other).abs().max() / other.abs().max())


def move_inside(place: Path) -> None:
    """Move the model into a folder of its own, as earlier versions wrote it."""
    inner = place / "0_Transformer"
    inner.mkdir()
    for file in [path for path in place.iterdir() if path.is_file() and path.name != "modules.json"]:
        file.rename(inner / file.name)
    modules = json.loads((place / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (place / "modules.json").write_text(json.dumps(modules))


def loaded(place: Path) -> LanguageModel:
    return orrery.load(place, "cpu", say=str)


@pytest.mark.parametrize("mode", POOLINGS)
def test_every_pooling_is_theirs(mode: str, tmp_path: Path) -> None:
    model = theirs(tmp_path, pooling=mode)
    lm = loaded(tmp_path / "folder")
    assert lm.sentences.vectors.pooling.modes == (mode,)
    assert distance(lm, model) < BOUND
    assert torch.equal(torch.tensor(orrery.pipeline("embedding", lm, batch_size=32)(TEXTS)), lm.embed(TEXTS))
    assert distance(loaded(tmp_path / "bare"), model, truncation=True) > (-1 if mode == "mean" else 100 * BOUND)


def chain(place: Path, name: str) -> SentenceTransformer:
    torch.manual_seed(0)
    width = load_family("bert").TINY["hidden_size"]
    steps: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
        "normalised": ((Normalize(),), {}),
        "dense": ((Dense(width, 7), Normalize()), {}),
        "two dense": (
            (Dense(width, 9, activation_function=torch.nn.GELU()), Dense(9, 5, bias=False, activation_function=None)),
            {},
        ),
        "residual": ((Dense(width, 6, use_residual=True), Dense(6, 6, use_residual=True)), {}),
        "layer norm": ((LayerNorm(width), Normalize()), {}),
        "several poolings": ((), {"pooling": ["cls", "max", "mean"]}),
        "short rows": ((), {"length": 9}),
        "prompts": (
            (Normalize(),),
            {"prompts": {"query": "the dog: ", "document": "mat "}, "default_prompt_name": "document"},
        ),
        "prompts left out": (
            (), {"prompts": {"query": "the dog: "}, "pools": {"include_prompt": False}},
        ),
    }  # fmt: skip
    behind, said = steps[name]
    for step in behind:
        for parameter in step.parameters():
            torch.nn.init.normal_(parameter, std=0.5)
    return theirs(place, *behind, **said)


CHAINS = (
    "normalised", "dense", "two dense", "residual", "layer norm", "several poolings", "short rows", "prompts",
    "prompts left out",
)  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_what_stands_behind_a_model_is_kept_there_and_back(name: str, tmp_path: Path) -> None:
    model = chain(tmp_path, name)
    lm = loaded(tmp_path / "folder")
    assert distance(lm, model) < BOUND
    if "prompts" in name:
        assert distance(lm, model, prompt="query") < BOUND
        assert distance(lm, model, prompt="") < BOUND
        assert (lm.embed(TEXTS, prompt="query") - lm.embed(TEXTS, prompt="")).abs().max() > 1e-3
        with pytest.raises(UsageError, match="no prompt is called 'x'"):
            lm.embed("cat", prompt="x")
    lm.save(tmp_path / "again")
    assert distance(lm, SentenceTransformer(str(tmp_path / "again"), device="cpu")) < BOUND
    assert torch.equal(loaded(tmp_path / "again").embed(TEXTS), lm.embed(TEXTS))


@pytest.mark.parametrize("older", [False, True])
def test_verbs_that_write_a_model_keep_it(older: bool, tmp_path: Path) -> None:
    model = chain(tmp_path, "dense")
    place = tmp_path / "folder"
    if older:
        move_inside(place)
    assert run(["import", str(place), str(tmp_path / "imported")]) == 0
    assert run(["export", str(place), "hf", str(tmp_path / "exported")]) == 0
    loaded(place).save(tmp_path / "own", layout="own")
    for name in ("imported", "exported", "own"):
        assert distance(loaded(tmp_path / name), model) < BOUND, name
    assert run(["quantise", str(place), str(tmp_path / "small")]) == 0
    assert 0 < distance(loaded(tmp_path / "small"), model) < 0.1


def test_batches_and_threads_of_rows_change_nothing(tmp_path: Path) -> None:
    theirs(tmp_path, Normalize(), length=20)
    lm = loaded(tmp_path / "folder")
    one, many = lm.embed(TEXTS, batch_size=1), lm.embed(TEXTS, batch_size=9)
    assert (one - many).abs().max() < BOUND
    assert torch.equal(lm.embed(TEXTS[2]), lm.embed([TEXTS[2]])[0])
    cut = lm.vectors(TEXTS)
    assert [vector.cut > 0 for vector in cut] == [len(lm.tokenizer.frame(text).ids) > 20 for text in TEXTS]
    with pytest.raises(UsageError, match="longer than"):
        lm.embed(TEXTS, truncation=False)


def test_an_older_folder_with_the_model_in_a_folder_of_its_own(tmp_path: Path) -> None:
    model = theirs(tmp_path)
    move_inside(tmp_path / "folder")
    assert distance(loaded(tmp_path / "folder"), model) < BOUND


ROWS, WHOLE = "sentence_bert_config.json", "config_sentence_transformers.json"
POOL = "1_Pooling/config.json"
# What a folder says in one of its files, and what it is called there.
ODD: dict[str, tuple[str, dict[str, Any]]] = {
    "a length of texts": (ROWS, {"processing_kwargs": {"text": {"max_length": 8, "truncation": True}}}),
    "a length of the tokenizer": (ROWS, {"tokenizer_args": {"model_max_length": 9}, "max_seq_length": 12}),
    "a length of both": (
        ROWS,
        {"processing_kwargs": {"common": {"max_length": 7}}, "processor_kwargs": {"model_max_length": 9}},
    ),
    "fewer numbers": (WHOLE, {"truncate_dim": 5}),
    "as many numbers as there are": (WHOLE, {"truncate_dim": 4096}),
    "a prompt that is none": (WHOLE, {"prompts": {"query": "the dog: ", "document": None}}),
    "no pooling is on": (POOL, {"pooling_mode_mean_tokens": False, "pooling_mode": None}),
}


@pytest.mark.parametrize("odd", ODD)
def test_what_an_odd_folder_says_is_followed(odd: str, tmp_path: Path) -> None:
    theirs(tmp_path, Normalize(), pooling=["mean", "cls"] if odd == "fewer numbers" else "mean", length=24)
    (file, said), place = ODD[odd], tmp_path / "folder"
    content = {**json.loads((place / file).read_text()), **said}
    (place / file).write_text(json.dumps({key: value for key, value in content.items() if value != "" and value != []}))
    if file == POOL:
        (place / file).write_text(json.dumps({"word_embedding_dimension": 16, "pooling_mode_cls_token": False}))
    model, lm = SentenceTransformer(str(place), device="cpu"), loaded(place)
    assert distance(lm, model) < BOUND
    lm.save(tmp_path / "again")
    assert distance(lm, SentenceTransformer(str(tmp_path / "again"), device="cpu")) < BOUND


def bad(place: Path, change: str) -> None:
    modules = json.loads((place / "modules.json").read_text())
    match change:
        case "no list":
            (place / "modules.json").write_text("{}")
        case "empty":
            (place / "modules.json").write_text("[]")
        case "outside":
            modules[1]["path"] = "../x"
        case "unknown module":
            modules[2]["type"] = "sentence_transformers.models.CNN"
        case "another program":
            modules[0]["type"] = "custom_st.Transformer"
        case "another output":
            said = {"modality_config": {"text": {"method": "forward", "method_output_name": "pooler_output"}}}
            (place / "sentence_bert_config.json").write_text(json.dumps(said))
        case "no texts":
            (place / "sentence_bert_config.json").write_text('{"modality_config": {"image": {}}}')
        case "truncation":
            (place / "sentence_bert_config.json").write_text('{"processing_kwargs": {"text": {"stride": 3}}}')
        case "numbers in words":
            (place / "config_sentence_transformers.json").write_text('{"truncate_dim": "few"}')
        case "no transformer":
            modules[0]["type"] = "sentence_transformers.models.WordEmbeddings"
        case "no pooling":
            del modules[1]
        case "unknown pooling":
            (place / "1_Pooling" / "config.json").write_text('{"pooling_mode": "median"}')
        case "no weights":
            (place / "2_Dense" / "model.safetensors").unlink()
        case "other weights":
            write_tensors(place / "2_Dense" / "model.safetensors", {"linear.weight": torch.zeros(2, 2)})
        case "unknown activation":
            (place / "2_Dense" / "config.json").write_text(
                '{"in_features": 4, "out_features": 4, "activation_function": "evil.module.Thing"}'
            )
        case "length in words":
            (place / "sentence_bert_config.json").write_text('{"max_seq_length": "long"}')
        case "unknown default":
            (place / "config_sentence_transformers.json").write_text('{"default_prompt_name": "x"}')
    if change not in ("no list", "empty"):
        (place / "modules.json").write_text(json.dumps(modules))


@pytest.mark.parametrize(
    "change",
    [
        "no list", "empty", "outside", "unknown module", "no transformer", "no pooling", "unknown pooling",
        "no weights", "other weights", "unknown activation", "length in words", "unknown default", "another program",
        "another output", "no texts", "truncation", "numbers in words",
    ],
)  # fmt: skip
def test_a_damaged_folder_is_refused_by_what_is_wrong(change: str, tmp_path: Path) -> None:
    chain(tmp_path, "dense")
    bad(tmp_path / "folder", change)
    with pytest.raises(ModelFileError) as refused:
        loaded(tmp_path / "folder")
    assert refused.value.hint
    assert str(tmp_path / "folder") in refused.value.message


def test_the_mean_is_taken_where_no_folder_says_how(tmp_path: Path) -> None:
    lm = loaded(folder(tmp_path / "bare"))
    assert not lm.sentences.given
    text = TEXTS[3]
    hidden = lm.hidden([lm.tokenizer.frame(text).ids])[0]
    assert (lm.embed(text) - hidden.mean(0)).abs().max() < BOUND
    assert lm.embed(text, normalise=True).norm() == pytest.approx(1)
    assert isinstance(lm.tokenizer, Tokenizer)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_fine_tuned_model_makes_its_vectors_there_too(pooling: str, tmp_path: Path) -> None:
    """The pooling of the base is what is trained, and what is saved."""
    theirs(tmp_path, pooling=pooling, length=24)
    rows = [{"text": f"the cat {word}", "text_pair": f"a dog {word}"} for word in WORDS.split() * 2]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["finetune", "embedding", "--from", str(tmp_path / "folder"), "--train", str(tmp_path / "pairs.jsonl")]
    assert run([*words, "--output", str(tmp_path / "run"), "--training.steps", "3"]) == 0
    lm = loaded(tmp_path / "run" / "final")
    assert lm.sentences.vectors.pooling.modes == (pooling,)
    assert lm.sentences.vectors.normalises
    assert lm.sentences.length == 24
    assert distance(lm, SentenceTransformer(str(tmp_path / "run" / "final"), device="cpu")) < BOUND
    recipe = (tmp_path / "run" / "config.yaml").read_text()
    assert f"pooling: {pooling}" in recipe


@pytest.mark.parametrize("final", ["best", "last"])
def test_the_matrices_behind_the_pooling_learn_and_stay(final: str, tmp_path: Path) -> None:
    """A folder with Dense and LayerNorm behind its pooling keeps them, and a matrix has moved."""
    theirs(tmp_path, Dense(load_family("bert").TINY["hidden_size"], 7), LayerNorm(7))
    before = loaded(tmp_path / "folder").sentences.vectors
    rows = [{"text": f"the cat {word}", "text_pair": f"a dog {word}"} for word in WORDS.split() * 2]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["finetune", "embedding", "--from", str(tmp_path / "folder"), "--train", str(tmp_path / "pairs.jsonl")]
    words += ["--training.steps", "4", "--training.final", final]
    assert run([*words, "--output", str(tmp_path / "run")]) == 0
    lm = loaded(tmp_path / "run" / "final")
    after = lm.sentences.vectors
    assert [type(step).__name__ for step in after.steps] == ["Dense", "LayerNorm", "UnitLength"]
    assert not torch.equal(before.steps[0].linear.weight, after.steps[0].linear.weight)
    assert not torch.equal(before.steps[1].weight, after.steps[1].weight)
    model = SentenceTransformer(str(tmp_path / "run" / "final"), device="cpu")
    assert distance(lm, model) < BOUND
    assert lm.embed("the cat").shape == (7,)


def test_an_adapter_keeps_how_vectors_are_made(tmp_path: Path) -> None:
    theirs(tmp_path, Dense(load_family("bert").TINY["hidden_size"], 7), length=24, pooling="cls")
    rows = [{"text": f"the cat {word}", "text_pair": f"a dog {word}"} for word in WORDS.split()]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ["finetune", "embedding", "--from", str(tmp_path / "folder"), "--train", str(tmp_path / "pairs.jsonl")]
    words += ["--training.steps", "2", "--model.adapter.kind", "lora", "--output", str(tmp_path / "run")]
    assert run(words) == 0
    lm = loaded(tmp_path / "run" / "final")
    assert lm.sentences.vectors.pooling.modes == ("cls",)
    assert (lm.sentences.length, lm.embed("the cat").shape) == (24, (7,))


def test_the_gradient_of_the_matrices_is_that_of_the_whole_chain() -> None:
    """What is learnt is the loss of the vectors that the folder makes, through every step."""
    spec = load_family("bert").spec(load_family("bert").TINY)
    torch.manual_seed(0)
    model = spec.build(0).double().eval()
    dense = vectors_of.Dense(spec.width, 7, bias=True, activation="torch.nn.modules.activation.Tanh")
    whole = vectors_of.SentenceVectors(vectors_of.Pooling(("mean",)), [dense, torch.nn.LayerNorm(7)]).double()
    objective = Contrastive()
    objective.begin(whole)
    batch = {
        "ids": torch.randint(3, 20, (6, 5)),
        "real": torch.arange(5) < torch.tensor([5, 3, 2, 5, 4, 1])[:, None],
        "group": torch.arange(6) // 2,
    }
    (term,) = objective.loss(model, batch).values()
    vectors = model(batch, {"hidden": lambda stream, x_BLD, real_BL: whole(stream(x_BLD, real_BL), batch["real"])})
    expected = info_nce(vectors["hidden"], batch["group"], 0.05)
    assert float((term.sum - expected).detach().abs()) < 1e-9
    ours = torch.autograd.grad(term.sum, list(objective.modules(model)["steps"].parameters()), retain_graph=True)
    other = torch.autograd.grad(expected, list(whole.steps.parameters()), retain_graph=True)
    assert max(float((one - two).abs().max()) for one, two in zip(ours, other, strict=True)) < 1e-9
    below = [one for one in model.parameters() if one.requires_grad]
    ours, other = (torch.autograd.grad(loss, below, allow_unused=True) for loss in (term.sum, expected))
    pairs = [(one, two) for one, two in zip(ours, other, strict=True) if two is not None]
    assert len(pairs) > 10
    assert max(float((one - two).abs().max()) for one, two in pairs) < 1e-9


@pytest.mark.parametrize("modes", [("mean", "cls"), ("max",)])
def test_steps_behind_another_pooling_are_not_begun_from(modes: tuple[str, ...]) -> None:
    dense = vectors_of.Dense(4 * len(modes), 3, bias=True, activation="torch.nn.modules.linear.Identity")
    objective = Contrastive()
    objective.begin(vectors_of.SentenceVectors(vectors_of.Pooling(modes), [dense]))
    assert objective.modules(torch.nn.Linear(1, 1)) == {}


def test_every_door_makes_the_same_vectors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chain(tmp_path, "prompts")
    lm = loaded(tmp_path / "folder")
    expected = lm.embed(["the cat", "a mat"], prompt="query")
    assert run(["embed", str(tmp_path / "folder"), "the cat", "a mat", "--prompt", "query"]) == 0
    printed = [json.loads(line)["vector"] for line in capsys.readouterr().out.splitlines()]
    assert torch.allclose(torch.tensor(printed), expected, atol=1e-6)
    with serving(lm, "toy") as server:
        body = {"model": "toy", "input": ["the cat", "a mat"], "prompt_name": "query"}
        status, answer = post(server, body, "/v1/embeddings")
        assert status == 200, answer
        assert torch.allclose(torch.tensor([one["embedding"] for one in answer["data"]]), expected, atol=1e-6)
        status, answer = post(server, {**body, "prompt_name": "x"}, "/v1/embeddings")
        assert (status, "no prompt is called" in answer["error"]["message"]) == (400, True)
