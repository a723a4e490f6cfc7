"""A tokenizer that is trained on another text than the model."""

import pytest

from orrery.errors import DataError, UsageError
from orrery.recipes.config import TokenizerSettings
from orrery.recipes.read import check_recipe
from orrery.runs.building import make_tokenizer

FILMS, NOVELS = "a stirring film\na dull film\n" * 30, "it was a bright morning in may\n" * 30


@pytest.fixture
def films(tmp_path):
    (tmp_path / "films.txt").write_text(FILMS, encoding="utf-8")
    return str(tmp_path / "films.txt")


def test_its_pieces_are_those_of_the_text_that_is_named(films):
    named = make_tokenizer(TokenizerSettings(kind="byte_bpe", train=films), [NOVELS])
    usual = make_tokenizer(TokenizerSettings(kind="byte_bpe"), [NOVELS])
    assert len(named.encode(FILMS)) < len(usual.encode(FILMS))
    assert len(named.encode(NOVELS)) > len(usual.encode(NOVELS))


def test_a_vocabulary_that_the_text_cannot_fill_is_refused_with_its_name(films):
    with pytest.raises(DataError, match=r"films\.txt gives a wordpiece tokenizer"):
        make_tokenizer(TokenizerSettings(kind="wordpiece", vocabulary=5000, train=films), [NOVELS])


def test_a_text_that_is_missing_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.txt"):
        make_tokenizer(TokenizerSettings(kind="wordpiece", train=str(tmp_path / "none.txt")), [NOVELS])


def test_a_text_without_words_is_named(tmp_path):
    (tmp_path / "blank.txt").write_text(" \n", encoding="utf-8")
    with pytest.raises(DataError, match=r"tokenizer\.train: .*blank\.txt is empty"):
        make_tokenizer(TokenizerSettings(kind="wordpiece", train=str(tmp_path / "blank.txt")), [NOVELS])


def test_a_file_is_trained_already(films):
    with pytest.raises(ValueError, match="trained already"):
        TokenizerSettings(file="tokenizer.json", train=films)


@pytest.mark.parametrize(("tokenizer", "refused"), [({}, True), ({"train": "films.txt"}, False)])
def test_shards_need_a_tokenizer_that_is_not_made_from_them(tokenizer, refused):
    values = {
        "name": "sharded",
        "model": {"family": "gpt2"},
        "tokenizer": {"kind": "byte_bpe", **tokenizer},
        "data": {"shards": "tokens"},
        "batches": {"length": 16, "size": 4},
        "training": {"steps": 4, "optimizer": {"rate": 0.01}},
    }
    if refused:
        with pytest.raises(UsageError, match=r"tokenizer\.train or tokenizer\.file"):
            check_recipe(values, "a test")
    else:
        assert check_recipe(values, "a test").tokenizer.train == "films.txt"
