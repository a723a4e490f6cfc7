"""Small pictures of patterns, made while a pass runs: no pattern is ever whole in memory."""

from fnmatch import fnmatchcase
from typing import final

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from orrery.inspection.recorder import Place

SIDE = 64
"""Rows and columns of a small picture."""


@final
class Thumbnails:
    """The largest weight of each cell of every pattern, and how far its rows are from one.

    The cells are those of ``adaptive_max_pool2d``: cell i of n holds the rows from ``floor(i L / n)`` to
    ``ceil((i + 1) L / n)``.

    Args:
        keys: a pattern of keys, of tensors ``[B, H, L, S]``.
        side: rows and columns of a picture, at most.

    Attributes:
        pictures: by key, ``[B, H, min(L, side), min(S, side)]``.
        off: by key, the greatest ``|sum of a row - 1|`` of the rows that see anything.
    """

    def __init__(self, keys: str = "*.pattern", side: int = SIDE) -> None:
        self.keys, self.side = keys, side
        self.pictures: dict[str, Float[Tensor, "B H l s"]] = {}
        self.off: dict[str, float] = {}

    def __call__(self, key: str, value: Tensor, place: Place | None, shape: tuple[int, ...]) -> None:
        """Take a pattern, or some heads and queries of one."""
        if not fnmatchcase(key, self.keys) or value.dim() != 4:
            return
        B, H, L = shape
        rows, columns = min(L, self.side), min(value.shape[-1], self.side)
        if key not in self.pictures:
            self.pictures[key] = value.new_zeros(B, H, rows, columns)
            self.off[key] = 0.0
        sums = value.sum(-1, dtype=torch.float64)
        off = torch.where(sums > 0.5, (sums - 1).abs(), 0.0).max() if sums.numel() else sums.new_zeros(())
        self.off[key] = max(self.off[key], float(off))
        heads, queries = (slice(0, H), slice(0, L)) if place is None else place[1:]
        narrow = F.adaptive_max_pool2d(value, (value.shape[2], columns))
        for cell in range(rows):
            begin, end = cell * L // rows, -(-(cell + 1) * L // rows)
            first, last = max(begin, queries.start) - queries.start, min(end, queries.stop) - queries.start
            if first < last:
                own = self.pictures[key][:, heads, cell]
                torch.maximum(own, narrow[:, :, first:last].amax(2), out=own)
