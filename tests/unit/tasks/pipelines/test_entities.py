"""How labels of tokens become entities, by hand."""

import numpy as np
import pytest

from orrery.tasks.pipelines._entities import Grouping, ScoredToken, groups_of, without_overlaps, words_of

NAMES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "MISC"]


def grouped(*labels: str) -> list[list[str]]:
    return [[one["entity"] for one in group] for group in groups_of([{"entity": label} for label in labels])]


def test_a_beginning_opens_a_group_and_a_bare_tag_goes_on():
    assert grouped("B-PER", "I-PER", "B-PER", "B-PER") == [["B-PER", "I-PER"], ["B-PER"], ["B-PER"]]
    assert grouped("I-PER", "I-PER", "I-LOC") == [["I-PER", "I-PER"], ["I-LOC"]]
    assert grouped("MISC", "MISC", "I-MISC", "O") == [["MISC", "MISC", "I-MISC"], ["O"]]


def token(text: str, start: int, inside: bool, **scores: float) -> ScoredToken:
    known = np.array([scores.get(name.replace("-", "_"), 0.0) for name in NAMES])
    return ScoredToken(text, known, start, start + len(text), start, inside)


TOKENS = [
    token("mic", 0, False, B_PER=0.6, B_LOC=0.4),
    token("ro", 3, True, B_LOC=0.9, O=0.1),
    token("x", 6, False, I_LOC=0.7, O=0.3),
]


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ("simple", [("PER", 0.6, 0, 3), ("LOC", 0.8, 3, 7)]),
        ("first", [("PER", 0.6, 0, 5), ("LOC", 0.7, 6, 7)]),
        ("average", [("LOC", (0.65 + 0.7) / 2, 0, 7)]),
        ("max", [("LOC", 0.8, 0, 7)]),
    ],
)
def test_strategies(strategy, expected):
    entities = Grouping(NAMES, "".join, strategy).of(TOKENS)
    assert [(one["entity_group"], one["start"], one["end"]) for one in entities] == [
        (a, c, d) for a, _, c, d in expected
    ]
    assert [one["score"] for one in entities] == pytest.approx([score for _, score, _, _ in expected])
    assert [len(word) for word in words_of(TOKENS)] == [2, 1]


def test_of_two_that_overlap_the_longer_stays_then_the_more_probable():
    def entity(start: int, end: int, score: float) -> dict:
        return {"start": start, "end": end, "score": score}

    long, short, likely = entity(0, 5, 0.1), entity(3, 5, 0.9), entity(0, 5, 0.2)
    assert without_overlaps([long, short]) == [long]
    assert without_overlaps([long, likely]) == [likely]
    assert without_overlaps([entity(6, 7, 0.1), long]) == [long, entity(6, 7, 0.1)]
    assert without_overlaps([]) == []
