"""Boxes: their corners, and how far two cover each other."""

import torch
from jaxtyping import Float
from torch import Tensor


def corners(boxes: Float[Tensor, "*B 4"]) -> Float[Tensor, "*B 4"]:
    """Return left, top, right and bottom of boxes that are given by middle, width and height."""
    middle, half = boxes[..., :2], boxes[..., 2:] / 2
    return torch.cat([middle - half, middle + half], -1)


def area(boxes: Float[Tensor, "*B 4"]) -> Float[Tensor, "*B"]:
    """Return the area of boxes that are given by their corners; 0 where they are empty."""
    return (boxes[..., 2:] - boxes[..., :2]).clamp(min=0).prod(-1)


def giou(one: Float[Tensor, "*#B 4"], other: Float[Tensor, "*#B 4"]) -> Float[Tensor, "*#B"]:
    """Return ``IoU - (hull - union) / hull``, -1 to 1, of boxes that are given by their corners.

    Rezatofighi et al. 2019: the hull is the smallest box around both, so that boxes apart differ by how far. Two empty
    boxes have 0 for their IoU.
    """
    shared = _box(torch.maximum(one[..., :2], other[..., :2]), torch.minimum(one[..., 2:], other[..., 2:]))
    hull = _box(torch.minimum(one[..., :2], other[..., :2]), torch.maximum(one[..., 2:], other[..., 2:]))
    both, whole = area(shared), area(hull)
    either = area(one) + area(other) - both
    least = torch.finfo(either.dtype).tiny
    return both / either.clamp(min=least) - (whole - either) / whole.clamp(min=least)


def _box(low: Tensor, high: Tensor) -> Tensor:
    return torch.cat([low, high], -1)
