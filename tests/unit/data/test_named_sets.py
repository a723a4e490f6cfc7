"""The named sets through their readers: the counts that their origins state."""

from collections import Counter

import pytest

from orrery.data import sets
from orrery.data.corpora import read_corpus, read_pairs, read_rows, read_sentences
from orrery.data.overview import one_line, overview
from orrery.data.readers.blocks import read_blocks
from orrery.data.readers.conllu import _token, surface
from orrery.errors import DataError

DOCUMENTS = {
    "banking77/train": 10_003,
    "eltec-novels/train": 83,
    "eltec-novels/val": 7,
    "gpteacher/codegen": 4_082,
    "gpteacher/roleplay": 1_731,
    "gsm8k/train": 7_473,
    "gsm8k/test": 660,
    "hh-rlhf-harmless": 1_803,
    "humaneval": 82,
    "instructions-small": 931,
    "python-peps/train": 587,
    "python-peps/val": 57,
    "sst2": 6_920,
    "sst2/dev": 872,
    "tiny-shakespeare": 1,
    "multi30k-en-de/train.en": 1,
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents(name, data_set):
    data_set(name.split("/")[0])
    assert sum(1 for _ in read_corpus(name)) == DOCUMENTS[name]


@pytest.mark.parametrize(
    ("part", "sentences", "words"),
    [pytest.param("train", 12_544, 204_577, marks=pytest.mark.slow), ("dev", 2_001, 25_147)],
)
def test_the_treebank(part, sentences, words, data_set):
    data_set("ud-english-ewt")
    treebank = list(read_sentences(f"ud-english-ewt/{part}"))
    assert (len(treebank), sum(len(sentence.words) for sentence in treebank)) == (sentences, words)
    for sentence in treebank:
        assert sentence.heads.count(0) == 1
        assert {len(layer) for layer in (sentence.lemmas, sentence.upos, sentence.feats)} == {len(sentence.words)}
    assert len({tag for sentence in treebank for tag in sentence.upos}) == 17
    assert len({sentence.name for sentence in treebank}) == sentences


def test_the_forms_of_the_treebank_spell_its_texts(data_set):
    different = 0
    for block in read_blocks(data_set("ud-english-ewt/dev.conllu.xz")):
        lines = [(line, line.text("error")) for line in block]
        (text,) = (content.removeprefix("# text = ") for _, content in lines if content.startswith("# text = "))
        different += surface([_token(line, content) for line, content in lines if content[0] != "#"]) != text
    assert different == 0


def test_the_names_of_social_media(data_set):
    data_set("wnut17-ner")
    train, dev = (list(read_sentences(f"wnut17-ner/{part}")) for part in ("train", "dev"))
    assert (len(train), len(dev)) == (3_394, 1_009)
    kinds = Counter(tag.partition("-")[2] for sentence in train for tag in sentence.tags)
    assert set(kinds) - {""} == {"corporation", "creative-work", "group", "location", "person", "product"}


@pytest.mark.parametrize(("name", "pairs"), [("", 29_000), ("/val", 1_014), ("/test_2016_flickr", 1_000)])
def test_the_captions_are_pairs(name, pairs, data_set):
    data_set("multi30k-en-de")
    captions = list(read_pairs(f"multi30k-en-de{name}"))
    assert (len(captions), captions[-1].line) == (pairs, pairs)


def test_rows_with_their_labels(data_set):
    for name in ("sst2", "banking77", "gsm8k"):
        data_set(name)
    assert Counter(row["2"] for row in read_rows("sst2/dev", ["1", "2"])) == {"1": 444, "0": 428}
    assert next(read_rows("sst2/dev")) == {"1": "one long string of cliches", "2": "0"}
    assert len({row["category"] for row in read_rows("banking77")}) == 77
    assert all("####" in row["answer"] for row in read_rows("gsm8k/test"))


def test_a_column_that_is_named_goes_before_the_set_s_own(data_set):
    data_set("gsm8k")
    assert "####" in next(read_corpus("gsm8k", column="answer")).text
    assert "####" not in next(read_corpus("gsm8k")).text


def test_the_registry_names_files_it_has():
    for data_set in sets.SETS.values():
        files = {file.name for file in data_set.files}
        assert {file for pair in data_set.pairs.values() for file in pair} | set(data_set.corpora.values()) <= files


def test_an_overview_counts_what_the_reader_understood(tmp_path):
    (tmp_path / "a.csv").write_text('text,label\n"one\ntwo",1\n ,0\n')
    seen = overview(str(tmp_path / "a.csv"), None, 1, "text")
    assert (seen.kind, seen.columns, seen.column) == ("documents", ("text", "label"), "text")
    assert seen.counts == {"documents": 2, "characters": 8, "empty documents": 1}
    assert [one_line(record) for record in seen.examples] == ["a.csv:2: one two"]
    (tmp_path / "a.conll").write_text("New\tB\nYork\tI\n\n")
    seen = overview(str(tmp_path / "a.conll"), None, 3, "text")
    assert seen.counts == {"sentences": 1, "words": 2, "documents": 0}
    assert [one_line(record) for record in seen.examples] == ["1: New/B York/I"]
    (tmp_path / "a.en").write_text("x " * 99 + "\n\n")
    (tmp_path / "a.de").write_text("y\nz\n")
    seen = overview(str(tmp_path / "a.en"), str(tmp_path / "a.de"), 1, "text")
    assert seen.counts["pairs"] == 2
    assert seen.counts["pairs with an empty side"] == 1
    assert one_line(seen.examples[0], 20) == "1: x x x x... ||| y"
    (tmp_path / "a.txt").write_text("b" * 500)
    seen = overview(str(tmp_path / "a.txt"), None, 1, "text")
    assert (seen.counts["documents"], seen.columns) == (1, ())
    assert len(one_line(seen.examples[0])) == 110


def test_what_a_folder_holds_is_one_kind_or_documents(tmp_path):
    (tmp_path / "a.conll").write_text("New\tB\n")
    (tmp_path / "a.txt").write_text("x")
    assert overview(str(tmp_path), None, 1, "text").kind == "documents"
    with pytest.raises(DataError, match="no such file"):
        overview(str(tmp_path / "b"), None, 1, "text")
