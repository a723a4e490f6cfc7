"""Marian's and M2M-100's folders: a SentencePiece model, and a list that numbers its pieces."""

import io
import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
import sentencepiece
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    M2M100Tokenizer,
    MarianTokenizer,
    MBart50Tokenizer,
    MBartTokenizer,
    NllbTokenizer,
)

import orrery
from orrery.cli.program import run
from orrery.errors import ModelFileError, UsageError
from orrery.exchange.saving.save import save_model
from orrery.families import load_family
from orrery.text.languages import reading
from orrery.text.published.listed import LANGUAGES
from orrery.text.tokenizer import load_tokenizer
from serving_toy import post, running
from tiny_models import randomised

SOURCE = [
    "the cat sat on the mat and drank coffee in the morning",
    "while birds sang a song, how nice!",
    "a mat, a cat",
]
TARGET = ["le chat était assis sur le tapis et buvait du café le matin", "pendant que les oiseaux chantaient ß 日"]
PARTS = (
    "cat", "mat", "the", "drank", "chat", "café", "ß", "日", "日本", "🙂", ">>fra<<", ">>deu<<", ">>xx", "<<", "</s>",
    "<unk>", "<pad>", "__fr__", "<s>", "▁", ",", "!", "zz", "", "é", "123",
)  # fmt: skip
KIND = {"marian": MarianTokenizer, "m2m_100": M2M100Tokenizer}


@cache
def spm(lines: tuple[str, ...], kind: str, size: int) -> bytes:
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 5), model_writer=made, vocab_size=size, model_type=kind, minloglevel=3,
        hard_vocab_limit=False, character_coverage=1.0,
    )  # fmt: skip
    return made.getvalue()


def pieces(content: bytes) -> list[str]:
    model = sentencepiece.SentencePieceProcessor(model_proto=content)
    return [model.id_to_piece(id) for id in range(model.get_piece_size()) if not model.is_control(id)]


def folder(place: Path, family: str, kind: str = "unigram", **config: object) -> Path:
    """Write the files of a family as they are published."""
    place.mkdir(exist_ok=True)
    source, target = spm(tuple(SOURCE), kind, 50), spm(tuple(TARGET), kind, 50)
    listed = [*dict.fromkeys(["</s>", "<unk>", *pieces(source)[:-3], *reversed(pieces(target)), ">>fra<<"]), "<pad>"]
    if family == "marian":
        (place / "source.spm").write_bytes(source)
        (place / "target.spm").write_bytes(target)
    else:
        listed = ["<s>", "<pad>", "</s>", "<unk>", *reversed(pieces(source)[1:-3])]
        (place / "sentencepiece.bpe.model").write_bytes(source)
        more = {"additional_special_tokens": [f"__{code}__" for code in LANGUAGES["m2m100"].split()]}
        (place / "special_tokens_map.json").write_text(json.dumps(more))
    (place / "vocab.json").write_text(json.dumps({piece: id for id, piece in enumerate(listed)}), encoding="utf-8")
    names = {"marian": "MarianTokenizer", "m2m_100": "M2M100Tokenizer"}
    (place / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": names[family], **config}))
    return place


def texts(count: int) -> list[str]:
    some = Random(7)
    words = [*PARTS, *" ".join(SOURCE + TARGET).split()]
    mixed = [" ".join(some.choice(words) for _ in range(some.randrange(12))) for _ in range(count)]
    return [
        *mixed,
        *SOURCE,
        *TARGET,
        "",
        " ",
        ">>fra<< the cat",
        ">>fra<<the cat",
        ">>xx<< a",
        ">><<",
        ">>a",
        "日本 cat",
    ]


@pytest.mark.filterwarnings("ignore:.*sacremoses")
@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("family", KIND)
def test_ids_and_texts_are_those_of_transformers(family: str, kind: str, tmp_path: Path) -> None:
    place = folder(tmp_path, family, kind, **({"src_lang": "fr"} if kind == "bpe" and family == "m2m_100" else {}))
    theirs, ours = KIND[family].from_pretrained(place), load_tokenizer(place)
    for text in texts(60):
        plain = theirs(text, split_special_tokens=True).input_ids
        assert ours.encode(text, special="around") == plain, text
        assert ours.encode(text) == [id for id, _, _ in ours.spans(text)]
        assert ours.decode(plain) == theirs.decode(plain, skip_special_tokens=True), text
        several = Random(text).choices(range(ours.size), k=9)
        assert ours.decode(several) == theirs.decode(several, skip_special_tokens=True), several
    ours.save(tmp_path / "again")
    again = load_tokenizer(tmp_path / "again")
    assert [again.encode(text, special="around") for text in texts(9)] == [
        ours.encode(text, special="around") for text in texts(9)
    ]
    assert ours.encode("the cat</s> a", special=True) == theirs("the cat</s> a", add_special_tokens=False).input_ids
    assert (ours.roles["pad"], ours.roles["end"]) == ("<pad>", "</s>")


@pytest.mark.filterwarnings("ignore:.*sacremoses")
def test_added_tokens_behind_the_list_are_written_and_read(tmp_path: Path) -> None:
    place = folder(tmp_path, "marian", additional_special_tokens=["<added>", "<named>"])
    size = len(json.loads((place / "vocab.json").read_text()))
    (place / "added_tokens.json").write_text(json.dumps({"<added>": size}))
    theirs, ours = MarianTokenizer.from_pretrained(place), load_tokenizer(place)
    ids = theirs("the cat<added> a<named>").input_ids
    assert ours.encode("the cat<added> a<named>", special=True) == ids[:-1]
    for special in (False, True):
        written = theirs.decode(ids, skip_special_tokens=not special)  # with a blank before </s>
        assert ours.decode(ids, special).replace(" ", "") == written.replace(" ", "")


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("said", [{}, {"src_lang": "fra_Latn"}, {"legacy_behaviour": True}], ids=str)
def test_nllb_needs_no_more_than_its_sentencepiece_model(kind: str, said: dict[str, Any], tmp_path: Path) -> None:
    content = spm(tuple(SOURCE + TARGET), kind, 60)
    (tmp_path / "sentencepiece.bpe.model").write_bytes(content)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "NllbTokenizer", **said}))
    pieces, ours = sentencepiece.SentencePieceProcessor(model_proto=content), load_tokenizer(tmp_path)
    codes = NllbTokenizer(vocab={}, merges=[]).extra_special_tokens
    behind = [len(pieces) + 1 + place for place in range(len(codes) + 1)]
    assert [ours.special(code) for code in (*codes, "<mask>")] == behind
    language = behind[codes.index(said.get("src_lang", "eng_Latn"))]
    for text in texts(60):
        plain = [id + 1 if id else 3 for id in pieces.encode(text)]
        framed = [*plain, 2, language] if "legacy_behaviour" in said else [language, *plain, 2]
        assert ours.encode(text, special="around") == framed, text
        # The unknown is a special token of the family's, and left out as in transformers.
        assert ours.decode(framed) == pieces.decode([id - 1 for id in plain if id > 3]).strip(), text
    ours.save(tmp_path / "again")
    assert load_tokenizer(tmp_path / "again").encode("the cat", special="around") == ours.encode(
        "the cat", special="around"
    )
    assert reading(ours, "deu_Latn").encode("the cat", special="around") != ours.encode("the cat", special="around")
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "NllbTokenizer", "src_lang": "tlh"}')
    with pytest.raises(ModelFileError, match="no language of 'NLLB-200'"):
        load_tokenizer(tmp_path)


def model_with(place: Path, family: str) -> Path:
    """Save a tiny model of a family beside the files of its vocabulary."""
    folder(place, family)
    size = load_tokenizer(place).size
    ids = {"pad_token_id": load_tokenizer(place).special("pad"), "eos_token_id": load_tokenizer(place).special("end")}
    start = {"decoder_start_token_id": ids["pad_token_id"] if family == "marian" else ids["eos_token_id"]}
    more = {"decoder_vocab_size": size, "share_encoder_decoder_embeddings": True} if family == "marian" else {}
    rules, model = load_family(family), place.parent / "model"
    config = {**rules.TINY, "vocab_size": size, "max_position_embeddings": 64, **ids, **start, **more}
    save_model(model, randomised(rules.spec(config).build(0).eval()), family, config)
    for file in place.iterdir():
        (model / file.name).write_bytes(file.read_bytes())
    return model


@pytest.mark.filterwarnings("ignore:.*sacremoses")
def test_a_published_folder_translates_between_the_languages_that_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = model_with(tmp_path / "files", "m2m_100")
    lm, text = orrery.load(place, "cpu", say=str), SOURCE[0]
    theirs = M2M100Tokenizer.from_pretrained(place, src_lang="de")
    model = AutoModelForSeq2SeqLM.from_pretrained(place)
    asked = theirs(text, return_tensors="pt")
    answer = model.generate(**asked, forced_bos_token_id=theirs.get_lang_id("fr"), num_beams=1, max_new_tokens=9)
    said = lm.translate([text], source_language="de", target_language="fr", num_beams=1, max_new_tokens=9)
    assert said == theirs.batch_decode(answer, skip_special_tokens=True)
    words = ["translate", str(place), text, "--source-language", "de", "--target-language", "fr", "--num-beams", "1"]
    assert run([*words, "--max-new-tokens", "9"]) == 0
    assert capsys.readouterr().out.strip() == said[0].strip()
    with pytest.raises(UsageError, match="no language 'xx'") as refused:
        lm.translate([text], target_language="xx")
    assert "__en__" in refused.value.hint
    pipe = orrery.pipeline("translation_en_to_fr", lm, num_beams=1, max_new_tokens=9)
    assert pipe(text, src_lang="de", tgt_lang="fr") == [{"translation_text": said[0]}]
    named = orrery.pipeline("translation_de_to_fr", lm, num_beams=1, max_new_tokens=9)
    assert named([text]) == [{"translation_text": said[0]}]
    assert [*named.rows(text, named.chosen({}))[0].ids] == theirs(text)["input_ids"]
    assert named.writer(named.chosen({})).writing["forced_bos_token_id"] == theirs.get_lang_id("fr")
    with pytest.raises(UsageError, match="no language 'xx'"):
        pipe(text, src_lang="xx")
    assert run(["import", str(place), str(tmp_path / "new")]) == 0
    assert orrery.load(tmp_path / "new", "cpu", say=str).tokenizer.encode(text) == lm.tokenizer.encode(text)


@pytest.mark.filterwarnings("ignore:.*sacremoses")
def test_a_client_names_the_languages_of_a_translation(tmp_path: Path) -> None:
    place = model_with(tmp_path / "files", "m2m_100")
    lm, search = orrery.load(place, "cpu", say=str), {"num_beams": 1}
    with running(place, dtype="float32") as server:
        asked = {"input": SOURCE[0], "source_language": "de", "target_language": "fr", "max_tokens": 9, **search}
        status, answer = post(server, asked, "/v1/translate")
        said = lm.translate([SOURCE[0]], source_language="de", target_language="fr", max_new_tokens=9, **search)
        assert (status, [one["text"] for one in answer["data"]]) == (200, said)
        for param in ("source_language", "target_language"):
            status, answer = post(server, {**asked, param: "xx"}, "/v1/translate")
            assert (status, answer["error"]["param"]) == (400, param)
            assert "__en__" in answer["error"]["message"]
        # Hugging Face's InferenceClient(URL).translation
        sent = {"inputs": SOURCE[0], "parameters": {"src_lang": "de", "tgt_lang": "fr"}}
        status, answer = post(server, sent, "/")
        assert (status, "POST /v1/translate" in answer["error"]["message"]) == (400, True)


@pytest.mark.filterwarnings("ignore:.*sacremoses")
def test_marian_reads_the_language_before_a_text(tmp_path: Path) -> None:
    place = model_with(tmp_path / "files", "marian")
    lm, text = orrery.load(place, "cpu", say=str), f">>fra<< {SOURCE[0]}"
    theirs, model = MarianTokenizer.from_pretrained(place), AutoModelForSeq2SeqLM.from_pretrained(place)
    answer = model.generate(**theirs(text, return_tensors="pt"), num_beams=1, max_new_tokens=9)
    assert lm.translate([text], num_beams=1, max_new_tokens=9) == theirs.batch_decode(answer, skip_special_tokens=True)
    with pytest.raises(UsageError, match="no language") as refused:
        lm.translate([text], target_language="fra")
    assert ">>fra<<" in refused.value.hint


@pytest.mark.parametrize("fault", ["separate", "no list", "hole", "no unknown", "language", "languages", "another"])
def test_files_that_do_not_fit_are_refused_by_what_is_wrong(fault: str, tmp_path: Path) -> None:
    family = "m2m_100" if "language" in fault else "marian"
    said = {
        "separate": {"separate_vocabs": True},
        "language": {"src_lang": "tlh"},
        "languages": {"language_codes": "x"},
    }
    place = folder(tmp_path, family, **said.get(fault, {}))
    listed = json.loads((place / "vocab.json").read_text())
    match fault:
        case "no list":
            (place / "vocab.json").unlink()
        case "hole":
            (place / "vocab.json").write_text(json.dumps({piece: id + (id > 5) for piece, id in listed.items()}))
        case "no unknown":
            listed["unknown"] = listed.pop("<unk>")
            (place / "vocab.json").write_text(json.dumps(listed))
        case "another":
            (place / "tokenizer_config.json").write_text('{"tokenizer_class": "LlamaTokenizer"}')
    with pytest.raises(ModelFileError) as refused:
        load_tokenizer(place)
    assert refused.value.hint


LANGUAGES_OF = {NllbTokenizer: "fra_Latn", MBartTokenizer: "fr_XX", MBart50Tokenizer: "fr_XX"}


@pytest.mark.parametrize("kind", LANGUAGES_OF)
@pytest.mark.parametrize("said", [{}, {"legacy_behaviour": True}, {"src_lang": "named"}])
def test_the_language_of_a_source_stands_where_the_class_puts_it(
    kind: Any, said: dict[str, Any], tmp_path: Path
) -> None:
    """A tokenizer.json of an earlier version has another frame, and transformers sets it aside too."""
    listed = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "▁": 4, "a": 5, "b": 6, "▁a": 7}
    scored = [(piece, -float(id)) for piece, id in listed.items()]
    bpe = kind is NllbTokenizer
    kind(vocab=listed if bpe else scored, **({"merges": [("▁", "a")]} if bpe else {})).save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        content = json.loads((tmp_path / name).read_text())
        content |= {"post_processor": None} if name == "tokenizer.json" else {"src_lang": None, **said}
        content |= {"src_lang": LANGUAGES_OF[kind]} if content.get("src_lang") == "named" else {}
        (tmp_path / name).write_text(json.dumps(content))
    theirs, ours = AutoTokenizer.from_pretrained(tmp_path), load_tokenizer(tmp_path)
    assert ours.encode("a b", special="around") == theirs("a b").input_ids
    assert ours.encode("a", special="around", pair="b") == theirs("a", "b").input_ids
    theirs.src_lang = "de_DE" if kind is not NllbTokenizer else "deu_Latn"
    assert reading(ours, theirs.src_lang).encode("a b", special="around") == theirs("a b").input_ids
