r"""Scores of labels, one or several for a text: accuracy, F1 and Matthews' correlation, from one table of counts.

Labels are words or numbers; a text with several has a set of them. The labels are all that occur on either side, as in
scikit-learn, with which every number agrees (``zero_division=0``). Where two systems are compared, ``labels`` are all
that occur in either: then both are counted alike. Labels that do not occur change no number.
"""

from collections.abc import Collection, Hashable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from orrery.errors import DataError
from orrery.scores.precision_recall import ZERO, Average, PrecisionRecall, f1_of, table
from orrery.scores.resampled import AdditiveScore, Floats, mean_of, same_length
from orrery.scores.signature import signature

Label: TypeAlias = Hashable
Labels: TypeAlias = Sequence[Label] | Sequence[Collection[Label]]
"""One label a text, or a set of labels a text."""


def accuracy(predicted: Labels, gold: Labels) -> AdditiveScore:
    """Return the share of texts whose label is right; of several labels all have to be, and no other."""
    sides, names, many = _read(predicted, gold)
    right = [float(ours == theirs) for ours, theirs in zip(*sides, strict=True)]
    return mean_of("accuracy", signature(n=len(right), labels=len(names), several=many), right)


def f1(predicted: Labels, gold: Labels, average: Average = "macro", labels: Sequence[Label] = ()) -> AdditiveScore:
    """Return F1 over the labels: micro, macro or weighted (see `precision_recall`)."""
    counts, names, many = _counts(predicted, gold, labels)
    met = int((counts.sum((0, 1)) > 0).sum())
    facts = signature(n=len(counts), labels=met, several=many, average=average, zero=ZERO)
    rows, of = counts.reshape(len(counts), -1), partial(f1_of, average=average)
    return AdditiveScore(f"F1-{average}", facts, rows, of, columns=names)


def by_label(predicted: Labels, gold: Labels) -> list[PrecisionRecall]:
    """Return precision, recall and F1 of each label, and of the three averages."""
    counts, names, _ = _counts(predicted, gold)
    return table(tuple(map(str, names)), counts.sum(0))


def confusion(predicted: Labels, gold: Labels) -> tuple[tuple[Label, ...], NDArray[np.int64]]:
    """Return the labels, and how often each was predicted: a row for each right label, a column a predicted one.

    Raises:
        DataError: a text has several labels: there is no one column for it.
    """
    cells, names = _cells(predicted, gold, "a table of confusions")
    size = len(names)
    return names, np.bincount(cells, minlength=size * size).reshape(size, size)


def matthews(predicted: Labels, gold: Labels, labels: Sequence[Label] = ()) -> AdditiveScore:
    r"""Return the correlation of predicted and right labels over any number of them; 0 where one side never changes.

    :math:`(c n - \sum_k p_k g_k) / \sqrt{(n^2 - \sum_k p_k^2)(n^2 - \sum_k g_k^2)}` with ``c`` right of ``n``, ``p_k``
    predicted as ``k`` and ``g_k`` that are. Matthews 1975; for more than two labels Gorodkin 2004.
    """
    cells, names = _cells(predicted, gold, "a correlation", labels)
    size = len(names)
    sums, rows = np.zeros((len(cells), 1 + 2 * size)), np.arange(len(cells))
    theirs, ours = np.divmod(cells, size)
    sums[:, 0] = ours == theirs
    sums[rows, 1 + ours] = 1
    sums[rows, 1 + size + theirs] = 1
    facts = signature(n=len(cells), labels=len({*predicted, *gold}), zero=ZERO)
    return AdditiveScore("Matthews", facts, sums, matthews_of, columns=names)


def matthews_of(sums: Floats) -> float:
    """Return the correlation from how many are right, are predicted as each label and are each label, in a row."""
    right, (ours, theirs) = float(sums[0]), sums[1:].reshape(2, -1)
    total = float(theirs.sum())
    spread = (total**2 - float(ours @ ours)) * (total**2 - float(theirs @ theirs))
    return (right * total - float(ours @ theirs)) / spread**0.5 if spread > 0 else float(ZERO)


def _cells(
    predicted: Labels, gold: Labels, what: str, labels: Sequence[Label] = ()
) -> tuple[NDArray[np.int64], tuple[Label, ...]]:
    """Return for each text the cell of the table in which it stands, and the labels."""
    (ours, theirs), names, many = _read(predicted, gold, labels)
    if many:
        raise DataError(f"{what} of texts with several labels", "give one label a text, or take F1")
    places = {name: place for place, name in enumerate(names)}
    rows, columns = ([places[next(iter(own))] for own in side] for side in (theirs, ours))
    return np.array(rows) * len(names) + np.array(columns), names


def _counts(predicted: Labels, gold: Labels, labels: Sequence[Label] = ()) -> tuple[Floats, tuple[Label, ...], bool]:
    """Return ``[texts, 3, labels]`` (predicted and right, predicted, right), the labels, whether texts have several."""
    sides, names, many = _read(predicted, gold, labels)
    places = {name: place for place, name in enumerate(names)}
    counts = np.zeros((len(sides[0]), 3, len(names)))
    for number, (ours, theirs) in enumerate(zip(*sides, strict=True)):
        for row, labels_of_text in enumerate((ours & theirs, ours, theirs)):
            counts[number, row, [places[label] for label in labels_of_text]] = 1
    return counts, names, many


def _read(
    predicted: Labels, gold: Labels, known: Sequence[Label] = ()
) -> tuple[list[list[frozenset[Label]]], tuple[Label, ...], bool]:
    """Return both sides as sets, all labels in order, and whether texts have several."""
    same_length(predicted, gold, "labels")
    kinds = {_is_set(value) for side in (predicted, gold) for value in side}
    if len(kinds) > 1:
        raise DataError("one label for some texts, sets of labels for others", "give all as sets, or none")
    (many,) = kinds
    pairs: tuple[Sequence[Any], Sequence[Any]] = predicted, gold
    sides = [[frozenset[Label](value if many else (value,)) for value in side] for side in pairs]
    names = {*known, *(label for side in sides for labels in side for label in labels)}
    wrong = [name for name in names if not isinstance(name, (str, int, np.integer))]
    if wrong:
        raise DataError(f"a label is a word or a whole number, not {wrong[0]!r}", "see `orrery.scores.regression`")
    if not names:
        raise DataError("no text has a label on either side", "give at least one label")
    return sides, tuple(sorted(names, key=lambda name: (isinstance(name, str), name))), many


def _is_set(value: Hashable | Collection[Label]) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str)
