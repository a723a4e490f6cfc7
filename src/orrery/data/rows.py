"""Batches of rows with several fields: lists are padded on the right, numbers stacked, rows of like length together."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orrery.data.batches import IGNORE, PureSource
from orrery.data.order import Shuffled
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


class RowBatches(PureSource):
    """Every epoch visits each row once, in batches of rows of like length: shuffled, then sorted within a pool.

    Raises `DataError` where there is no row.
    """

    def __init__(self, rows: Sequence[Row], size: int, seed: int, pool: int = 64) -> None:
        _check(rows)
        self.rows, self.size, self.seed, self.pool = rows, size, seed, pool
        self.lengths = np.array([len(row["ids"]) for row in rows])
        self.order = Shuffled(len(rows), seed)
        self.tokens_per_step = size * int(self.lengths.max())
        self.rows_per_epoch = len(rows)
        self._pool = lru_cache(maxsize=2)(self._sorted_pool)

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the batch of ``step``, of the pool it lies in."""
        return padded([self.rows[number] for number in self._pool(step // self.pool)[step % self.pool]])

    def _sorted_pool(self, pool: int) -> NDArray[np.int64]:
        """Return the numbers of the rows of a pool, [batch of the pool, row]."""
        count = self.pool * self.size
        numbers = self.order.items(pool * count, (pool + 1) * count)
        batches = numbers[np.argsort(self.lengths[numbers], kind="stable")].reshape(self.pool, self.size)
        # A seed beside that of the epochs: pools must not repeat the order of the rows.
        shuffled: NDArray[np.int64] = batches[np.random.default_rng([self.seed, pool, 1]).permutation(self.pool)]
        return shuffled


class SequentialRows(PureSource):
    """All rows, in their order or those of like length together, for evaluation; the last batch may have fewer.

    Raises `DataError` where there is no row.
    """

    def __init__(self, rows: Sequence[Row], size: int) -> None:
        _check(rows)
        self.rows = sorted(rows, key=lambda row: len(row["ids"]))
        self.size = size
        self.tokens_per_step = size * len(self.rows[-1]["ids"])
        self.rows_per_epoch = len(rows)

    def __len__(self) -> int:
        return -(-len(self.rows) // self.size)

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the batch of ``step``, from 0 to below ``len(self)``."""
        rows = self.rows[step * self.size : (step + 1) * self.size]
        if step < 0 or not rows:
            raise UsageError(f"batch {step} of {len(self)}", "evaluation ends after the last one")
        return padded(rows)


def _check(rows: Sequence[Row]) -> None:
    if not rows:
        raise DataError("there are 0 rows to learn from", "give the recipe's data a file that has some")
