"""The scores of pixels, whichever head gives them: that over patches, or SegFormer's over every fourth point."""

from torch import Tensor

from orrery.models.model import ModelSpec

POINTS = "points"
"""SegFormer's head, whose scores have the labels last."""


def pixel_head(spec: ModelSpec, named: str) -> str:
    """Return the name of the head that scores pixels: the one that is named, or SegFormer's where that is not there."""
    return POINTS if named not in spec.head_names and POINTS in spec.head_names else named


def labels_second(scores: Tensor, head: str) -> Tensor:
    """Return the scores that a head of this name gave as ``[B, labels, rows, columns]``."""
    return scores.permute(0, 3, 1, 2) if head == POINTS else scores
