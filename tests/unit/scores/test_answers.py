"""Exact match and F1 of answers against the formula of the published script, written a second time."""

import re
import string

import numpy as np
import pytest

from orrery.errors import DataError
from orrery.scores.answers import answer_f1, exact_match, normalised


def published(predicted, answers):
    """As SQuAD 2's script does it, step by step."""

    def cut(text):
        text = "".join(letter for letter in text.lower() if letter not in set(string.punctuation))
        return re.sub(r"\b(a|an|the)\b", " ", text).split()

    def f1(own, right):
        a, b = cut(own), cut(right)
        left, same = list(b), 0
        for word in a:
            if word in left:
                left.remove(word)
                same += 1
        if not a or not b:
            return int(a == b)
        if not same:
            return 0
        precision, recall = same / len(a), same / len(b)
        return 2 * precision * recall / (precision + recall)

    answers = [answer for answer in answers if " ".join(cut(answer))] or [""]
    return max(int(cut(predicted) == cut(a)) for a in answers), max(f1(predicted, a) for a in answers)


WORDS = ["the", "a", "An", "cat", "Cat.", "sat", "(mat)", "-", "1,000", "1000", "sat", "O'Neil", "é", ""]


@pytest.mark.parametrize("seed", range(40))
def test_they_agree_with_the_published_formula(seed):
    rng = np.random.default_rng(seed)
    draw = lambda: " ".join(rng.choice(WORDS, size=int(rng.integers(0, 5))))  # noqa: E731
    ours = [draw() for _ in range(25)]
    gold = [[draw() for _ in range(int(rng.integers(0, 4)))] for _ in range(25)]
    wanted = np.array([published(own, answers) for own, answers in zip(ours, gold, strict=True)])
    assert exact_match(ours, gold).score == pytest.approx(100 * wanted[:, 0].mean())
    assert answer_f1(ours, gold).score == pytest.approx(100 * wanted[:, 1].mean())


def test_answers_counted_by_hand():
    assert normalised("  The U.S. Army's a tank ") == "us armys tank"
    assert answer_f1(["the cat sat"], [["cat sat down", "dog"]]).score == pytest.approx(80)
    assert exact_match(["The cat!"], [["dog", "cat"]]).score == 100
    assert exact_match(["", "word"], [[], []]).score == 50  # no answer: the empty one is right
    assert answer_f1(["the", ""], [[], ["x"]]).score == 50  # nothing is left of "the"
    assert str(exact_match(["x"], [[]])).startswith("exact-match 0.00 (n:1|none:1|norm:squad|references:best|orrery:")


def test_what_cannot_be_scored():
    with pytest.raises(DataError, match="0 predicted answers"):
        exact_match([], [])
    with pytest.raises(DataError, match="1 predicted answers, 2 right ones"):
        answer_f1(["a"], [["a"], []])
    with pytest.raises(DataError, match="are a list"):
        answer_f1(["a"], ["a"])
