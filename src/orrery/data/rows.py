"""Batches of rows with several fields: lists are padded on the right, numbers stacked, rows of like length together."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orrery.data.batches import IGNORE, PureSource
from orrery.data.row_batches import row_batches
from orrery.data.token_batches import POOL, Numbers, cut
from orrery.errors import DataError, UsageError

Row = Mapping[str, Any]
"""Fields by name: ``ids`` and other lists of as many numbers, single numbers, and tuples of a fixed length."""

FILLS = {"targets": IGNORE}
"""What stands beyond the end of a list, where it is not 0."""


def padded(rows: Sequence[Row]) -> dict[str, Tensor]:
    """Return rows as tensors, ``[B, L]`` for lists and ``[B]`` or ``[B, N]`` else, and ``real``, where the ids are."""
    found = {name: _column(name, [row[name] for row in rows]) for name in rows[0]}
    lengths = torch.tensor([len(row["ids"]) for row in rows])
    return {**found, "real": torch.arange(found["ids"].shape[1]) < lengths[:, None]}


def _column(name: str, values: Sequence[Any]) -> Tensor:
    if not isinstance(values[0], list):
        whole = torch.tensor(values)
        return whole.float() if whole.is_floating_point() else whole
    filled = np.full((len(values), max(map(len, values))), FILLS.get(name, 0), np.int64)
    for place, value in enumerate(values):
        filled[place, : len(value)] = value
    return torch.from_numpy(filled)


class PaddedRows(PureSource):
    """Every epoch visits each row once, in batches of rows of like length, of ``size`` rows or of ``tokens``.

    Raises `DataError` where there is no row.
    """

    def __init__(self, rows: Sequence[Row], size: int, seed: int, tokens: int | None = None) -> None:
        _check(rows)
        self.rows, self.lengths = rows, lengths_of(rows)
        # A pool of several epochs would bring the copies of a row together, which are of one length.
        pool = POOL if tokens else max(1, min(POOL, len(rows) // size))
        self.batches = row_batches(self.lengths, size, tokens, seed, pool)
        self.tokens_per_step = tokens or size * int(self.lengths.max())
        self.rows_per_epoch = len(rows)

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the batch of ``step``."""
        return padded([self.rows[number] for number in self.batches.rows(step)])


class SequentialRows(PureSource):
    """All rows, those of like length together, for evaluation: ``size`` a batch, or as many as ``tokens`` hold.

    Raises `DataError` where there is no row.
    """

    def __init__(self, rows: Sequence[Row], size: int, tokens: int | None = None) -> None:
        _check(rows)
        self.rows = sorted(rows, key=lambda row: len(row["ids"]))
        by_size = (slice(start, start + size) for start in range(0, len(rows), size))
        self.slices = list(by_size if tokens is None else cut(lengths_of(self.rows), tokens))
        self.tokens_per_step = tokens or size * len(self.rows[-1]["ids"])
        self.rows_per_epoch = len(rows)

    def __len__(self) -> int:
        return len(self.slices)

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the batch of ``step``, from 0 to below ``len(self)``."""
        if not 0 <= step < len(self):
            raise UsageError(f"batch {step} of {len(self)}", "evaluation ends after the last one")
        return padded(self.rows[self.slices[step]])


def lengths_of(rows: Sequence[Row]) -> Numbers:
    """Return the positions that each row takes, [row, 1]."""
    return np.array([[len(row["ids"])] for row in rows], np.int64).reshape(-1, 1)


def _check(rows: Sequence[Row]) -> None:
    if not rows:
        raise DataError("there are 0 rows to learn from", "give the recipe's data a file that has some")
