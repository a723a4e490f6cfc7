"""Average precision of boxes, as COCO defines it (Lin et al. 2014; the numbers are pycocotools')."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from orrery.scores.resampled import Floats, Resampled, Rows, same_length
from orrery.scores.signature import signature

THRESHOLDS = tuple(np.linspace(0.5, 0.95, 10).tolist())
"""The overlaps from 0.5 to 0.95 over which COCO's own number is the mean, rounded as pycocotools has them."""
MOST = 100
"""Boxes of one label that count in a picture, the surest."""
POINTS = np.linspace(0, 1, 101)
"""The recalls at which precision is read."""


@dataclass(frozen=True)
class Found:
    """A box that is said: its label, left, top, width and height, and how sure it is."""

    label: str
    box: tuple[float, float, float, float]
    score: float


@dataclass(frozen=True)
class Right:
    """A box that is right; those of a crowd hold many things, and nothing is asked of them."""

    label: str
    box: tuple[float, float, float, float]
    crowd: bool = False


@dataclass(frozen=True)
class _Picture:
    """Of each label in a picture: how many boxes are asked, and of each box said its score and what became of it.

    ``hits`` [thresholds, boxes] are right, ``passed`` count neither for nor against.
    """

    asked: dict[str, int]
    said: dict[str, tuple[Floats, NDArray[np.bool_], NDArray[np.bool_]]]


def average_precision(
    said: Sequence[Sequence[Found]],
    right: Sequence[Sequence[Right]],
    thresholds: Sequence[float] = THRESHOLDS,
    name: str = "AP",
) -> "AveragePrecision":
    """Return the mean over labels and thresholds of the precision at 101 recalls, the best at that recall or beyond.

    A box said is right where it overlaps one that is right by the threshold, and no surer one has taken that; of
    several it takes the one that it overlaps most.

    Args:
        said: the boxes of each picture.
        right: those that are right.
        thresholds: the overlaps that are asked.
        name: what the score is called.

    Raises:
        DataError: there is nothing to score, or one side has more pictures.
    """
    same_length(said, right, "pictures")
    bounds = np.array(thresholds)
    each = [_matched(ours, theirs, bounds) for ours, theirs in zip(said, right, strict=True)]
    over = f"{thresholds[0]:g}" if len(thresholds) == 1 else f"{thresholds[0]:g}-{thresholds[-1]:g}"
    told = signature(n=len(said), iou=over, points=len(POINTS), boxes=MOST)
    return AveragePrecision(name, told, each)


def overlaps(ours: Floats, theirs: Floats, crowd: NDArray[np.bool_]) -> Floats:
    """Return the IoU of boxes ``[N, 4]`` with others, ``[N, others]``; with a crowd the share of the box inside it."""
    low = np.maximum(ours[:, None, :2], theirs[None, :, :2])
    high = np.minimum((ours[:, :2] + ours[:, 2:])[:, None], (theirs[:, :2] + theirs[:, 2:])[None])
    shared = np.clip(high - low, 0, None).prod(-1)
    own, other = ours[:, 2:].prod(-1)[:, None], theirs[:, 2:].prod(-1)[None]
    whole = np.where(crowd[None], own, own + other - shared)
    return np.asarray(shared / np.maximum(whole, np.finfo(float).tiny))


def _matched(said: Sequence[Found], right: Sequence[Right], thresholds: Floats) -> _Picture:
    """Say what becomes of each box of a picture, label by label."""
    asked: dict[str, int] = {}
    found = {}
    for label in sorted({each.label for each in said} | {each.label for each in right}):
        theirs = sorted((each for each in right if each.label == label), key=lambda each: each.crowd)
        ours = sorted((each for each in said if each.label == label), key=lambda each: -each.score)[:MOST]
        asked[label] = sum(not each.crowd for each in theirs)
        crowd = np.array([each.crowd for each in theirs], bool)
        table = overlaps(_boxes(ours), _boxes(theirs), crowd)
        taken = [_taken(table, crowd, bound) for bound in thresholds]
        hits = np.array([[place >= 0 and not crowd[place] for place in row] for row in taken], bool)
        passed = np.array([[place >= 0 and bool(crowd[place]) for place in row] for row in taken], bool)
        shape = (len(thresholds), len(ours))
        found[label] = (np.array([each.score for each in ours]), hits.reshape(shape), passed.reshape(shape))
    return _Picture(asked, found)


def _boxes(boxes: Sequence[Found] | Sequence[Right]) -> Floats:
    return np.array([each.box for each in boxes], np.float64).reshape(-1, 4)


def _taken(table: Floats, crowd: NDArray[np.bool_], bound: float) -> list[int]:
    """Return for each box, the surest first, the right one that it takes, or -1; those of a crowd stand last."""
    free, found = np.ones(len(crowd), bool), []
    for row in table:
        place, least = -1, min(bound, 1 - 1e-10)
        for other, overlap in enumerate(row):
            if not free[other] and not crowd[other]:
                continue
            if place >= 0 and not crowd[place] and crowd[other]:
                break  # one that counts is better than any crowd
            if overlap >= least:
                place, least = other, overlap
        if place >= 0:
            free[place] = False
        found.append(place)
    return found


@dataclass(frozen=True)
class _Label:
    """The boxes of one label of all pictures, the surest first, and how many each picture has that are asked."""

    score: Floats
    hits: NDArray[np.bool_]
    passed: NDArray[np.bool_]
    picture: NDArray[np.int64]
    asked: Floats


@dataclass(frozen=True)
class AveragePrecision(Resampled):
    """Average precision of some pictures, which knows what it would be on others of the same.

    A picture that is drawn twice has each box twice. Where two systems are mixed, each picture has the boxes of one.
    """

    name: str
    signature: str
    pictures: Sequence[_Picture]
    digits: int = 4
    higher_is_better: bool = True

    @property
    def examples(self) -> int:
        """How many pictures it is computed from."""
        return len(self.pictures)

    @cached_property
    def labels(self) -> dict[str, _Label]:
        """The boxes by label, of the labels that are asked or said."""
        return {label: _collected(label, self.pictures) for label in sorted(_labels(self.pictures))}

    def of_drawn(self, drawn: Rows) -> Floats:
        """Return the score of each sample, from how often it has each picture."""
        counts = (np.bincount(row, minlength=self.examples).astype(np.float64) for row in drawn)
        return np.array([_mean(self.labels, weights) for weights in counts])

    def of_mixed(self, other: "AveragePrecision", swapped: NDArray[np.bool_]) -> Floats:
        """Return the score of each mixture."""
        both = AveragePrecision(self.name, self.signature, (*self.pictures, *other.pictures))
        rows = np.concatenate([~swapped, swapped], 1).astype(np.float64)
        return np.array([_mean(both.labels, weights) for weights in rows])


def _labels(pictures: Sequence[_Picture]) -> set[str]:
    return {label for each in pictures for label in each.asked}


def _collected(label: str, pictures: Sequence[_Picture]) -> _Label:
    own = [(number, each.said[label]) for number, each in enumerate(pictures) if label in each.said]
    scores = np.concatenate([scores for _, (scores, _, _) in own])
    order = np.argsort(-scores, kind="mergesort")
    numbers = np.repeat([number for number, _ in own], [len(scores) for _, (scores, _, _) in own])
    hits, passed = (np.concatenate([each[part] for _, each in own], 1)[:, order] for part in (1, 2))
    asked = np.array([each.asked.get(label, 0) for each in pictures], np.float64)
    return _Label(scores[order], hits, passed, numbers[order].astype(np.int64), asked)


def _mean(labels: Mapping[str, _Label], weights: Floats) -> float:
    """Return the mean over labels and thresholds, each picture as often as its weight says; of nothing asked 0."""
    values = [_precision(each, weights) for each in labels.values() if each.asked @ weights > 0]
    return float(np.mean(values)) if values else 0.0


def _precision(label: _Label, weights: Floats) -> float:
    """Return the mean precision of a label over recalls and thresholds."""
    own = weights[label.picture]
    kept = own > 0
    right = (label.hits[:, kept] * own[kept]).cumsum(1)
    wrong = (~(label.hits | label.passed)[:, kept] * own[kept]).cumsum(1)
    precision = right / (right + wrong + np.spacing(1))
    best = np.maximum.accumulate(precision[:, ::-1], 1)[:, ::-1]
    recall, whole = right / (label.asked @ weights), 0.0
    for bound in range(len(best)):
        places = np.searchsorted(recall[bound], POINTS, side="left")
        whole += best[bound, places[places < best.shape[1]]].sum()
    return whole / (len(best) * len(POINTS))
