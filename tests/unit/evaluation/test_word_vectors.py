"""Analogies and similarity are counted as brute force and gensim count them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.errors import DataError
from orrery.evaluation.benchmarks.word_vectors import answer_analogies, judge_similarity, read_questions
from orrery.models.word2vec.vectors import Vectors
from orrery.scores.regression import rank_correlation

QUESTIONS = [": first", "A b c d", "b a d c", "a b c nobody", ": second", "c d e f", "e f a b", "a c E g"]
PAIRS = [("a", "B", 3.0), ("c", "d", 1.0), ("e", "f", 2.0), ("a", "nobody", 5.0), ("f", "g", 2.0), ("b", "g", 9.0)]


def vectors(seed, words=("a", "b", "c", "d", "e", "f", "g", "A")):
    return Vectors(words, np.random.default_rng(seed).normal(size=(len(words), 3)).astype(np.float32))


@pytest.mark.parametrize("seed", range(10))
def test_analogies_by_brute_force(seed):
    lower = vectors(seed, tuple("abcdefg"))
    right = {"first": 0, "second": 0}
    asked = {"first": 0, "second": 0}
    for section, four in read_questions(QUESTIONS):
        a, b, c, answer = (word.lower() for word in four)
        if answer != "nobody":
            asked[section] += 1
            right[section] += lower.analogy(a, b, c)[0][0] == answer
    assert asked == {"first": 2, "second": 3}
    answers = answer_analogies(lower, read_questions(QUESTIONS))
    assert {answer.section: answer.right for answer in answers} == right
    assert {answer.section: answer.asked for answer in answers} == asked
    assert [answer.skipped for answer in answers] == [1, 0]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.filterwarnings("ignore")
def test_the_same_numbers_as_gensim(tmp_path, seed):
    from gensim import models

    ours = vectors(seed)
    theirs = models.KeyedVectors(3)
    theirs.add_vectors(list(ours.words), ours.matrix)
    (tmp_path / "questions").write_text("\n".join(QUESTIONS))
    (tmp_path / "pairs").write_text("\n".join("\t".join(map(str, pair)) for pair in PAIRS))
    _, sections = theirs.evaluate_word_analogies(str(tmp_path / "questions"))
    counted = {
        part["section"]: (len(part["correct"]), len(part["correct"]) + len(part["incorrect"])) for part in sections
    }
    for answer in answer_analogies(ours, read_questions(QUESTIONS)):
        assert counted[answer.section] == (answer.right, answer.asked)
    _, (correlation, _), unknown = theirs.evaluate_word_pairs(str(tmp_path / "pairs"))
    mine, used, skipped = judge_similarity(ours, PAIRS)
    assert mine == pytest.approx(correlation, abs=1e-12)
    assert skipped / (used + skipped) == pytest.approx(unknown / 100)


def test_restricting_leaves_the_rare_words_out():
    answers = answer_analogies(vectors(0, tuple("abcdefg")), read_questions(QUESTIONS), restrict=4)
    assert [(answer.asked, answer.skipped) for answer in answers] == [(2, 1), (0, 3)]


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=20))
def test_spearman_is_pearson_of_mean_ranks(pairs):
    def rank(values):
        return [sum(x < value for x in values) + (sum(x == value for x in values) + 1) / 2 for value in values]

    one, other = ([float(value) for value in side] for side in zip(*pairs, strict=True))
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert np.isnan(rank_correlation(one, other))
    else:
        assert rank_correlation(one, other) == pytest.approx(np.corrcoef(rank(one), rank(other))[0, 1], abs=1e-12)


def test_what_cannot_be_read_is_named():
    with pytest.raises(DataError, match="line 2: 3 words"):
        list(read_questions([": s", "a b c"]))
    with pytest.raises(DataError, match="no analogy"):
        answer_analogies(vectors(0), [])
    with pytest.raises(DataError, match="0 predicted numbers"):
        judge_similarity(vectors(0), [("x", "y", 1.0)])
