"""The bilingual dictionary against expectation maximisation in fractions, and the words it puts back."""

from collections import defaultdict
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.errors import DataError
from orrery_course.tables.dictionary import align, back_off, hide, learn, restore

# Brown et al.'s classic: only the second pair tells which word is the house.
HOUSES = [(["the", "house"], ["das", "Haus"]), (["the", "book"], ["das", "Buch"])]


def exact(pairs, rounds):
    """IBM model 1 one word at a time, in exact fractions."""
    t = {(e, f): Fraction(1) for source, target in pairs for e in source for f in target}
    for _ in range(rounds):
        counts, total = defaultdict(Fraction), defaultdict(Fraction)
        for source, target in pairs:
            for f in set(target):
                beside = sum(t[e, f] for e in set(source))
                for e in set(source):
                    counts[e, f] += t[e, f] / beside
                    total[e] += t[e, f] / beside
        t = {(e, f): counts[e, f] / total[e] for e, f in t}
    return t


SENTENCES = st.lists(st.sampled_from("abcd"), min_size=1, max_size=4)


@given(st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=5), st.integers(0, 3))
def test_probabilities_are_those_of_model_1(pairs, rounds):
    probabilities = learn(pairs, rounds)
    expected = exact(pairs, rounds)
    assert probabilities.keys() == expected.keys()
    assert all(abs(probabilities[cell] - float(expected[cell])) < 1e-12 for cell in expected)


def test_the_second_sentence_tells_the_words_apart():
    table = learn(HOUSES)
    assert back_off(table) == {"the": "das", "house": "Haus", "book": "Buch"}
    assert align(["the", "house"], ["das", "Haus"], table) == [0, 1]
    # What no sentence taught goes to the nearest word that is still free.
    assert align(["the", "new", "house"], ["das", "neue", "Haus"], table) == [0, 1, 2]
    assert align(["house", "napa"], ["Napa", "Haus"], table) == [1, 0]
    assert align(["the"], ["das", "Ding"], table) == [0, 0]


def test_unknown_words_are_looked_up_or_copied():
    table = learn(HOUSES)
    source, target = ["the", "book", "Orrery"], ["das", "Buch", "Orrery"]
    output = hide(target, {"das"})
    assert output == ["das", "UNK", "UNK"]
    assert restore(output, source, align(source, target, table), back_off(table)) == ["das", "Buch", "Orrery"]


def test_a_corpus_without_words_is_refused():
    with pytest.raises(DataError, match="no pair with words on both sides"):
        learn([([], ["a"]), (["b"], [])])
