"""Accuracy, F1 and Matthews' correlation against scikit-learn, and what cannot be scored."""

import numpy as np
import pytest

from orrery.errors import DataError
from orrery.scores import precision_recall
from orrery.scores.classification import accuracy, by_label, confusion, f1, matthews
from orrery.scores.precision_recall import AVERAGES, ratios

oracle = pytest.importorskip("sklearn.metrics")


def random_labels(seed):
    rng = np.random.default_rng(seed)
    size, kinds = int(rng.integers(1, 30)), int(rng.integers(1, 6))
    return rng.integers(kinds, size=size).tolist(), rng.integers(int(rng.integers(1, kinds + 1)), size=size).tolist()


@pytest.mark.parametrize("seed", range(60))
def test_one_label_a_text_agrees_with_scikit_learn(seed):
    ours, theirs = random_labels(seed)
    assert accuracy(ours, theirs).score == pytest.approx(oracle.accuracy_score(theirs, ours), abs=1e-12)
    names, table = confusion(ours, theirs)
    assert list(names) == sorted({*ours, *theirs})
    count = lambda r, c: sum((t, o) == (r, c) for t, o in zip(theirs, ours, strict=True))  # noqa: E731
    assert table.tolist() == [[count(right, predicted) for predicted in names] for right in names]
    if len(names) == 1:
        return  # the oracle warns of one class alone; see below
    assert table.tolist() == oracle.confusion_matrix(theirs, ours, labels=names).tolist()
    assert matthews(ours, theirs).score == pytest.approx(oracle.matthews_corrcoef(theirs, ours), abs=1e-12)
    lines = by_label([str(label) for label in ours], [str(label) for label in theirs])
    for place, average in enumerate((None, *AVERAGES)):
        expected = oracle.precision_recall_fscore_support(theirs, ours, average=average, zero_division=0)
        own_lines = lines[: len(names)] if average is None else [lines[len(names) + place - 1]]
        for key, column in zip(("precision", "recall", "f1"), expected, strict=False):
            assert [getattr(line, key) for line in own_lines] == pytest.approx(
                np.atleast_1d(column).tolist(), abs=1e-12
            )
        if average is None:
            assert [line.support for line in own_lines] == expected[3].tolist()
        else:
            assert f1(ours, theirs, average).score == pytest.approx(expected[2], abs=1e-12)
            assert f1(ours, theirs, average, labels=[*range(9)]).score == pytest.approx(expected[2], abs=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_many_labels_a_text_agree_with_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    ours, theirs = (rng.integers(2, size=(9, 4)) * (rng.random((9, 4)) < 0.7) for _ in range(2))
    met = np.flatnonzero((ours + theirs).any(0))
    if not len(met):
        return
    sets = [[set(np.flatnonzero(row).tolist()) for row in side] for side in (ours, theirs)]
    assert accuracy(*sets).score == pytest.approx(oracle.accuracy_score(theirs, ours))
    for average in AVERAGES:
        expected = oracle.f1_score(theirs[:, met], ours[:, met], average=average, zero_division=0)
        assert f1(*sets, average).score == pytest.approx(expected, abs=1e-12)


def test_the_signature_says_how():
    assert f1(["a", "b"], ["a", "c"], "macro").signature.startswith(
        "n:2|labels:3|several:no|average:macro|zero:0|orrery:"
    )
    assert f1([{"a"}, set()], [{"a"}, {"b"}], "micro").signature.startswith("n:2|labels:2|several:yes|average:micro")
    assert str(accuracy([1, 0], [1, 1])).startswith("accuracy 0.5000 (n:2|labels:2|several:no|orrery:")


def test_a_label_never_seen_and_one_class_alone():
    assert f1(["new", "a"], ["a", "a"], "macro").score == pytest.approx(1 / 3)  # 2/3 and 0
    assert matthews(["a", "a"], ["a", "a"]).score == 0
    assert f1(["a", "a"], ["a", "a"]).score == 1
    assert {line.label: line.recall for line in by_label(["new", "a"], ["a", "a"])}["new"] == 0


@pytest.mark.parametrize(
    ("ours", "theirs", "text"),
    [
        ([], [], "0 predicted labels"),
        (["a"], ["a", "b"], "1 predicted labels, 2 right ones"),
        ([float("nan")], [1], "not nan"),
        ([0.5], [1], "not 0.5"),
        (["a"], [{"a"}], "sets of labels for others"),
        ([set()], [set()], "no text has a label"),
    ],
)
def test_what_cannot_be_scored(ours, theirs, text):
    with pytest.raises(DataError, match=text):
        f1(ours, theirs)


def test_several_labels_have_no_table():
    with pytest.raises(DataError, match="several labels"):
        confusion([{"a"}], [{"a"}])


def test_the_comparison_sees_another_rule(monkeypatch):
    """A macro mean that counts labels which occur on neither side is told from the oracle's."""
    plain = lambda counts, average: ratios(counts).mean(1)  # noqa: E731
    monkeypatch.setattr(precision_recall, "averaged", plain)
    ours, theirs = [0, 1, 1], [0, 1, 0]
    wanted = oracle.f1_score(theirs, ours, average="macro")
    assert f1(ours, theirs).score == pytest.approx(wanted)
    assert f1(ours, theirs, labels=[0, 1, 2]).score < wanted - 0.1
