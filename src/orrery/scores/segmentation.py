"""Scores of pixels: how far what is said covers what is right, and the share of pixels that is right."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.scores.resampled import AdditiveScore, Floats, same_length, share
from orrery.scores.signature import signature

Labels = NDArray[np.int64]
IGNORED = -100
"""The label of a pixel that is not asked."""


def mean_iou(said: Sequence[Labels], right: Sequence[Labels], labels: int) -> AdditiveScore:
    """Return ``mean_c b_c / (p_c + g_c - b_c)`` over all pictures together, of the labels that occur on either side.

    ``b`` are the pixels said and right, ``p`` those said, ``g`` those right (Everingham et al. 2015).

    Args:
        said: a label for each pixel of each picture.
        right: the same; -100 is not asked.
        labels: how many there are.

    Raises:
        DataError: there is nothing to score, or one side has more pictures.
    """
    same_length(said, right, "pictures")
    sums = np.stack([_counts(one, other, labels) for one, other in zip(said, right, strict=True)])
    told = signature(n=len(said), labels=labels, mean="labels that occur", over="all pictures together")
    return AdditiveScore("mean IoU", told, sums, mean_iou_of, columns=tuple(range(3 * labels)))


def pixel_accuracy(said: Sequence[Labels], right: Sequence[Labels]) -> AdditiveScore:
    """Return the share of pixels that is right, of those asked.

    Raises:
        DataError: there is nothing to score, or one side has more pictures.
    """
    same_length(said, right, "pictures")
    asked = [other != IGNORED for other in right]
    hits = [((one == other) & own).sum() for one, other, own in zip(said, right, asked, strict=True)]
    sums = np.stack([np.array(hits, np.float64), np.array([own.sum() for own in asked], np.float64)], 1)
    return AdditiveScore("pixel accuracy", signature(n=len(said)), sums, share)


def mean_iou_of(sums: Floats) -> float:
    """Return the mean IoU of counts ``[3 * labels]``: said and right, said, right; 0 where nothing was asked."""
    each = iou_of_each(sums)
    known = each[~np.isnan(each)]
    return float(known.mean()) if known.size else 0.0


def iou_of_each(sums: Floats) -> Floats:
    """Return the IoU of each label, not a number where it occurs on neither side."""
    both, said, right = sums.reshape(3, -1)
    either = said + right - both
    return np.where(either > 0, both / np.maximum(either, 1), np.nan)


def _counts(said: Labels, right: Labels, labels: int) -> Floats:
    asked = right != IGNORED
    ours, theirs = said[asked], right[asked]
    parts: tuple[Any, ...] = (ours[ours == theirs], ours, theirs)
    return np.concatenate([np.bincount(part, minlength=labels) for part in parts]).astype(np.float64)
