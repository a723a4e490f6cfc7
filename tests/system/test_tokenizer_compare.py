"""`orrery tokenizer compare`: texts through all kinds, and the table of a parallel text."""

import gzip
import json

import pytest

from orrery.cli.tokenizer.app import app
from orrery.errors import DataError, UsageError
from orrery.text.train import train_tokenizer

TEXT = "low lower lowest low low slow\n" * 30


@pytest.fixture
def compare(tmp_path, capsys):
    def run(*words):
        file = tmp_path / "result.json"
        app(["compare", *map(str, words), "--json", str(file)], result_action="return_value")
        return capsys.readouterr().out, json.loads(file.read_text(encoding="utf-8"))

    return run


@pytest.fixture
def files(tmp_path):
    source, target = tmp_path / "corpus.en", tmp_path / "corpus.de.gz"
    source.write_text("the house of Berlin\nthe book\n" * 30)
    target.write_bytes(gzip.compress(b"das Haus von Berlin\ndas Buch\n" * 30))
    return source, target


def test_one_sentence_through_every_kind(compare, tmp_path):
    (tmp_path / "corpus.txt").write_text(TEXT)
    output, result = compare("low slower", "--corpus", tmp_path / "corpus.txt", "--vocabulary", 300)
    kinds = ["byte_bpe", "character", "word", "char_bpe", "wordpiece", "unigram", "bigram"]
    assert sorted(result["tokenizers"]) == sorted(kinds)
    assert result["texts"][0]["pieces"]["word"] == ["low", "<OOV>"]
    assert result["tokenizers"]["character"]["compression"] == 1.0
    assert result["tokenizers"]["word"]["unknown_rate"] == 0.5
    assert "trained on 900 characters" in output
    assert "word       low <OOV>" in output


def test_given_tokenizers_on_a_file(compare, tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    for name, kind in (("one", "byte_bpe"), ("two", "character")):
        train_tokenizer(kind, [TEXT], 270).save(tmp_path / name)
    output, result = compare(tmp_path / "text.txt", "--tokenizer", tmp_path / "one", "--tokenizer", tmp_path / "two")
    assert list(result["tokenizers"]) == [str(tmp_path / "one"), str(tmp_path / "two")]
    assert result["tokenizers"][str(tmp_path / "two")]["tokens"] == len(TEXT)
    assert not result["texts"]  # too long to show
    assert "bytes a token" in output


def test_what_cannot_be_trained_is_said(compare, tmp_path):
    (tmp_path / "corpus.txt").write_text(TEXT)
    output, result = compare("low", "--corpus", tmp_path / "corpus.txt", "--vocabulary", 30)
    assert "at least 257" in result["not_trained"]["byte_bpe"]
    assert "byte_bpe: not trained: " in output


def test_a_parallel_text_in_the_layout_of_the_slide(compare, files):
    output, result = compare("--parallel", *files, "--vocabulary", 40)
    rows = ["source", "reference", "WDict", "C2", "BPE separate", "BPE joint"]
    assert [list(table) for table in result["sentences"]] == [rows]
    assert result["pairs"] == {"train": 57, "held_back": 3}
    assert result["shared_words"]["cut_alike"]["BPE joint"] == result["shared_words"]["words"] == 1
    assert [line.split("  ")[0] for line in output.splitlines()[:6]] == rows
    output, result = compare("the book", "--parallel", *files, "--vocabulary", 40, "--overwrite")
    assert [table["reference"] for table in result["sentences"]] == ["das Buch"]


def test_what_is_wrong_is_named(compare, files):
    with pytest.raises(UsageError, match="nothing to compare"):
        compare()
    with pytest.raises(DataError, match="no such file"):
        compare("corpse.txt")
    with pytest.raises(UsageError, match="--sentences -1"):
        compare("--parallel", *files, "--sentences", -1)
    with pytest.raises(UsageError, match="its own tokenizers"):
        compare("--parallel", *files, "--corpus", "python-docs")
    with pytest.raises(DataError, match="no line of the source is 'the boat'"):
        compare("the boat", "--parallel", *files, "--vocabulary", 40)
    files[0].write_text("one line\n")
    with pytest.raises(DataError, match=r"has 1 lines, .* has 60"):
        compare("--parallel", *files)
