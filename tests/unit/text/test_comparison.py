"""Measures of tokenizers, and the course's table on a parallel text small enough to check by hand."""

import pytest

from orrery.errors import DataError, UsageError
from orrery.text.algorithms.words import of_words
from orrery.text.comparison import Measures, measure, train_all
from orrery.text.kinds import TOKENIZERS
from orrery.text.tokenizer import Tokenizer
from orrery_course.tables.parallel import shared_words, split, telling, train_systems

PAIRS = [
    ("the house of Berlin", "das Haus von Berlin"),
    ("the book", "das Buch"),
    ("the house", "das Haus"),
    ("the book of Berlin", "das Buch von Berlin"),
] * 10


def test_measures_are_counts_by_hand():
    tokenizer = Tokenizer(of_words(["<OOV>", "low", "lower"]).to_str())
    measures = measure(tokenizer, ["low  löwe", "lower"])
    assert measures == Measures(vocabulary=3, bytes=15, words=3, tokens=3, unknown=1)
    assert (measures.compression, measures.fertility, measures.unknown_rate) == (5.0, 1.0, 1 / 3)
    empty = measure(tokenizer, [""])
    assert (empty.compression, empty.fertility, empty.unknown_rate) == (0.0, 0.0, 0.0)


def test_every_kind_is_trained_or_says_why_not():
    texts = [" ".join(pair) for pair in PAIRS]
    told = []
    trained, refused = train_all(texts, 300, told.append)
    assert told == [*TOKENIZERS.names()] == list(trained)
    assert not refused
    few, refused = train_all(texts, 40, lambda kind: None)
    assert "word" in few
    assert "at least 257" in refused["byte_bpe"]


def test_every_twentieth_pair_is_held_back():
    train, held_back = split(PAIRS)
    assert (len(train), held_back) == (38, [PAIRS[0], PAIRS[20]])
    with pytest.raises(DataError, match="1 pairs of lines"):
        split(PAIRS[:1])


@pytest.fixture(scope="module")
def systems():
    return train_systems(PAIRS, 40, lambda name: None)


def test_the_table_has_the_rows_of_the_slide(systems):
    table = systems.table(("the house of Bonn", "das Haus von Bonn"))
    assert list(table) == ["source", "reference", "WDict", "C2", "BPE separate", "BPE joint"]
    assert table["WDict"] == "das Haus von UNK → das Haus von Bonn"
    assert table["C2"] == "the house of <unk> <unk> → das Haus von <unk> <unk>"
    for name in ("BPE separate", "BPE joint"):
        assert table[name].replace(" ", "") == "thehouseofBonn→dasHausvonBonn"


def test_measures_of_both_sides(systems):
    source, target = systems.word.measures([("the house of Bonn", "das Haus")])
    assert (source.tokens, source.words, source.unknown, target.unknown) == (4, 4, 1, 0)
    source, target = systems.subword["BPE joint"].measures(PAIRS[:1])
    assert (source.words, source.unknown, target.words) == (4, 0, 4)
    assert source.vocabulary == target.vocabulary
    assert systems.subword["BPE separate"].source.size <= 40 < systems.subword["BPE joint"].source.size <= 60


def test_names_are_cut_alike_by_the_joint_vocabulary(systems):
    shared = shared_words(PAIRS)
    assert shared == [" Berlin"]
    assert systems.subword["BPE joint"].consistent(shared) == 1
    names = train_systems([("Ulm Ulm Ulm a b", "Ulm Um Um um lm lm Lm lm c d")] * 5, 40, lambda name: None)
    assert names.subword["BPE separate"].consistent([" Um", " Ulm"]) < 2


def test_the_pairs_with_most_unknown_words_are_chosen(systems):
    strange = ("the zoo", "das Zoo")
    assert telling([PAIRS[0], strange, PAIRS[1]], systems.word, 2) == [strange, PAIRS[0]]


def test_a_vocabulary_that_characters_fill_is_refused():
    with pytest.raises(UsageError, match="alone fill"):
        train_systems(PAIRS, 6, lambda name: None)


def test_the_whole_table_of_a_public_corpus(data_set):
    from orrery.data.corpora import read_pairs

    folder = data_set("multi30k-en-de")
    pairs = [(pair.source, pair.target) for pair in read_pairs(folder / "val.en.gz", folder / "val.de.gz")]
    assert len(pairs) == 1014
    train, held_back = split(pairs)
    systems = train_systems(train, 1500, lambda name: None)
    rate = {
        name: [side.unknown_rate for side in system.measures(held_back)] for name, system in systems.by_name.items()
    }
    fertility = {
        name: [side.fertility for side in system.measures(held_back)] for name, system in systems.by_name.items()
    }
    # What the course says of them: words leave much unknown, pairs little and BPE next to nothing, at few more tokens.
    for side in (0, 1):
        assert rate["WDict"][side] > 0.05 > rate["C2"][side] >= rate["BPE separate"][side]
        assert fertility["C2"][side] > fertility["BPE separate"][side] > fertility["WDict"][side]
    shared = shared_words(pairs)
    assert systems.subword["BPE joint"].consistent(shared) == len(shared)
    assert systems.subword["BPE separate"].consistent(shared) < len(shared)
