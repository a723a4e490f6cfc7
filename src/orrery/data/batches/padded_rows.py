"""Batches of rows with several fields: lists are padded on the right, numbers stacked, rows of like length together."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orrery.data.batches.by_tokens import POOL, Numbers, cut
from orrery.data.batches.choosing_rows import row_batches
from orrery.data.batches.order import Shuffled
from orrery.data.batches.packing import pack, pieces
from orrery.data.batches.token_windows import IGNORE, PureSource
from orrery.errors import DataError, UsageError

Row = Mapping[str, Any]
"""Fields by name: ``ids`` and other lists of as many numbers, single numbers, and tuples of a fixed length."""

FILLS = {"targets": IGNORE}
"""What stands beyond the end of a list, where it is not 0."""
TYPES: Mapping[str, Any] = {"weights": np.float64}
"""What a list holds where it holds no whole numbers."""


def padded(rows: Sequence[Row]) -> dict[str, Tensor]:
    """Return rows as tensors, ``[B, L]`` for lists and ``[B]`` or ``[B, N]`` else, and ``real``, where the ids are."""
    columns = {name: _column(name, [row[name] for row in rows]) for name in rows[0]}
    lengths = torch.tensor([len(row["ids"]) for row in rows])
    return {**columns, "real": torch.arange(columns["ids"].shape[1]) < lengths[:, None]}


def _column(name: str, values: Sequence[Any]) -> Tensor:
    if not isinstance(values[0], list):
        column = torch.tensor(values)
        return column.float() if column.is_floating_point() else column
    filled = np.full((len(values), max(map(len, values))), FILLS.get(name, 0), TYPES.get(name, np.int64))
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


class PackedRows(PureSource):
    """Whole rows packed into longer ones: their fields, ``documents`` and ``positions``.

    ``documents`` numbers what is in a row from 0, -1 is padding; ``positions`` restart in each. The rows are packed
    once; each epoch visits them in another order. Raises `DataError` where there is no row, or one is too long.
    """

    def __init__(self, rows: Sequence[Row], length: int, size: int, seed: int) -> None:
        _check(rows)
        lengths = [len(row["ids"]) for row in rows]
        if max(lengths) > length:
            raise DataError(f"a row of {max(lengths):,} tokens does not fit into {length:,}", "raise batches.length")
        self.rows, self.length, self.size = rows, length, size
        self.packed = pack(pieces(lengths, length), length)
        self.order = Shuffled(len(self.packed), seed)
        self.tokens_per_step = size * length
        self.rows_per_epoch = len(self.packed)

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the packed rows of ``step``, in the order of their epoch."""
        numbers = self.order.items(step * self.size, (step + 1) * self.size)
        return {name: torch.from_numpy(np.stack(arrays)) for name, arrays in self._columns(numbers).items()}

    def epochs(self, step: int) -> float:
        """Return how often the rows were gone through before ``step``."""
        return step * self.size / len(self.packed)

    @property
    def padding(self) -> float:
        """The share of positions that hold nothing."""
        return 1 - sum(len(row["ids"]) for row in self.rows) / (len(self.packed) * self.length)

    def _columns(self, numbers: Numbers) -> dict[str, list[Any]]:
        rows = [self._row([piece.document for piece in self.packed[number]]) for number in numbers]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def _row(self, together: Sequence[int]) -> dict[str, Any]:
        fills = {**{name: FILLS.get(name, 0) for name in self.rows[0]}, "documents": -1, "positions": 0}
        filled = {name: np.full(self.length, fill, TYPES.get(name, np.int64)) for name, fill in fills.items()}
        place = 0
        for number, document in enumerate(together):
            row = self.rows[document]
            here = slice(place, place + len(row["ids"]))
            for name, values in row.items():
                filled[name][here] = values
            filled["documents"][here], filled["positions"][here] = number, np.arange(len(row["ids"]))
            place = here.stop
        return filled
