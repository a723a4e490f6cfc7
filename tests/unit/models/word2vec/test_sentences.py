"""From text to sentences: where they end, what a word is, gone through as often as asked, with phrases joined."""

import tempfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.models.word2vec.phrases import phrase_scores
from orrery.models.word2vec.sentences import CutText, with_phrases
from orrery.models.word2vec.vocabulary import StoredCorpus, TrainingText, Vocabulary, WordCorpus

TEXT = "The cat's cradle\nheld 3 cats.\n\nÉté à 2-3 o\u2019clock\n \n"


@pytest.mark.parametrize(
    ("unit", "cut", "lowercase", "expected"),
    [
        ("lines", "letters", True, ["the cat's cradle", "held cats", "été à o\u2019clock"]),
        ("paragraphs", "letters", False, ["The cat's cradle held cats", "Été à o\u2019clock"]),
        ("lines", "spaces", False, ["The cat's cradle", "held 3 cats.", "Été à 2-3 o\u2019clock"]),
    ],
)
def test_sentences_and_words(unit, cut, lowercase, expected):
    sentences = CutText(lambda: iter([TEXT, "", TEXT]), unit, cut, lowercase)
    assert list(sentences) == [line.split() for line in expected * 2]
    assert list(sentences) == list(sentences)  # read again each time


def test_two_passes_join_up_to_four_words():
    lines = [["in", "new", "york", "city", "hall", str(number), "x"] for number in range(30)]
    lines += [[str(number), "y"] for number in range(400)]
    joined = next(iter(with_phrases(lines, 1, 10.0)))
    assert joined == ["in_new", "york_city", "hall", "0", "x"]
    assert next(iter(with_phrases(lines, 2, 10.0))) == ["in_new_york_city", "hall", "0", "x"]
    assert with_phrases(lines, 0) is lines


def test_each_pass_asks_for_half_the_score_of_the_one_before():
    lines = [["in", "new", "york", "city", "hall", str(number), "x"] for number in range(30)]
    once = list(with_phrases(lines, 1, 5.0))
    words, pairs = (max(phrase_scores(cut_lines).values()) for cut_lines in (lines, once))
    assert 5.0 / 2 < pairs < 5.0 < words
    assert once[0] == ["in_new", "york_city", "hall", "0", "x"]
    assert next(iter(with_phrases(lines, 2, 5.0))) == ["in_new_york_city", "hall", "0", "x"]


@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=9), min_size=1, max_size=20), st.integers(1, 30))
def test_a_corpus_in_a_file_has_the_chunks_of_one_in_memory(sentences, size):
    text = [*sentences, ["a", "b"]]
    vocabulary = Vocabulary.count(text, 1)
    whole = WordCorpus.of(text, vocabulary)
    with tempfile.TemporaryFile() as file:
        stored = StoredCorpus(file, text, vocabulary)
        assert isinstance(stored, TrainingText)
        assert stored.words == whole.words == sum(map(len, text))
        for _ in range(2):
            pairs = list(zip(stored.chunks(size), whole.chunks(size), strict=True))
            assert all(np.array_equal(one.tokens, other.tokens) for one, other in pairs)
            assert all(np.array_equal(one.starts, other.starts) for one, other in pairs)
        assert all(chunk.words >= size for chunk, _ in pairs[:-1])
