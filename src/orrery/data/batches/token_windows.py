"""Batches as a pure function of (seed, step): resume needs no state, ranks and workers change no order.

Every source has ``batch(step)`` for the global batch of a step, ``tokens_per_step``, its positions at most,
and ``rows_per_epoch``, how many rows are once through its text. Tensors are int64 [B, L] unless said
otherwise; ``targets[b, t]`` is the token after ``ids[b, t]``, or IGNORE.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orrery.data.batches.order import Shuffled
from orrery.data.batches.packing import Piece, pack, pieces
from orrery.data.shards.index import ShardSet
from orrery.errors import DataError, UsageError

IGNORE = -100
"""The target of a position that no loss counts."""

Ids = Sequence[int] | NDArray[Any]

Stream = Ids | ShardSet
"""One long text: in memory, or in shards of which only the slices that a batch needs are read."""


class PureSource(ABC):
    """A source of batches that depends on (seed, step) alone, and so has nothing to save."""

    tokens_per_step: int
    rows_per_epoch: float

    @abstractmethod
    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the global batch of ``step``, from 0."""

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint must keep: nothing."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned. Raises `UsageError` for the state of another kind of source."""
        if state:
            raise UsageError(f"{type(self).__name__} has no state, got {', '.join(state)}", "resume the same run")


class DividedBatches(PureSource):
    """Batches of ``size`` rows whose lengths and targets are known unread, so that some rows can be read alone."""

    size: int

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the global batch of ``step``, with the tokens of all rows."""
        return self.share(step, range(self.size))

    @abstractmethod
    def share(self, step: int, rows: range) -> dict[str, Tensor]:
        """Return the batch of ``step`` with the tokens of some rows alone, the others being 0: no more is read."""


class CropBatches(DividedBatches):
    """Random crops of one long token stream: ``ids`` and ``targets``, each start equally likely."""

    def __init__(self, ids: Stream, length: int, size: int, seed: int) -> None:
        _need(len(ids), length + 1)
        self.ids, self.length, self.size, self.seed = _sliceable(ids), length, size, seed
        self.tokens_per_step = size * length
        self.rows_per_epoch = len(ids) / length

    def share(self, step: int, rows: range) -> dict[str, Tensor]:
        """Return the crops of ``step``, drawn from (seed, step)."""
        starts = np.random.default_rng([self.seed, step]).integers(len(self.ids) - self.length, size=self.size)
        crops = np.zeros((self.size, self.length + 1), np.int64)
        for row in rows:
            crops[row] = self.ids[starts[row] : starts[row] + self.length + 1]
        return _tensors(ids=crops[:, :-1], targets=crops[:, 1:])


class PackedBatches(DividedBatches):
    """Whole documents packed into rows: ``ids, targets, documents, positions``.

    ``documents`` numbers the documents of a row from 0, -1 is padding; ``positions`` restart in each. Nothing
    is predicted across a border: the last token of a document has no target. A document longer than a row is
    cut into rows that keep their targets. The rows are packed once; each epoch visits them in another order.
    """

    def __init__(self, documents: Sequence[Ids], length: int, size: int, seed: int) -> None:
        _need(sum(len(document) > 1 for document in documents), 1, "documents of two tokens or more")
        self.documents, self.length, self.size = documents, length, size
        self.rows = pack(pieces([len(document) for document in documents], length), length)
        self.order = Shuffled(len(self.rows), seed)
        self.tokens_per_step = size * length
        self.rows_per_epoch = len(self.rows)

    def share(self, step: int, rows: range) -> dict[str, Tensor]:
        """Return the rows of ``step``, in the order of their epoch."""
        numbers = self.order.items(step * self.size, (step + 1) * self.size)
        made = [self._row(self.rows[number], place in rows) for place, number in enumerate(numbers)]
        return _tensors(**{name: np.stack([row[name] for row in made]) for name in made[0]})

    def _row(self, row: Sequence[Piece], read: bool) -> dict[str, NDArray[np.int64]]:
        fills = {"ids": 0, "targets": IGNORE, "documents": -1, "positions": 0}
        filled = {name: np.full(self.length, fill, np.int64) for name, fill in fills.items()}
        place = 0
        for number, piece in enumerate(row):
            ids, targets = _shifted(self.documents[piece.document], piece.start, piece.stop, read)
            here = slice(place, place + len(ids))
            filled["ids"][here], filled["targets"][here] = ids, targets
            filled["documents"][here], filled["positions"][here] = number, np.arange(len(ids))
            place += len(ids)
        return filled


class PaddedBatches(DividedBatches):
    """One document a row, truncated to ``length``, padded on the right: ``ids, targets``, ``real`` (bool).

    Bucketing: documents are shuffled, then sorted by length within a pool of ``pool`` batches, so that a
    batch holds documents of like length and is only as wide as its longest. Every epoch visits each document
    once.
    """

    def __init__(
        self, documents: Sequence[Ids], size: int, seed: int, length: int, pad: int = 0, pool: int = 64
    ) -> None:
        _need(len(documents), 1, "documents")
        if not all(len(document) for document in documents):
            raise DataError("a document has 0 tokens", "leave empty documents out")
        self.documents, self.size, self.seed, self.length, self.pad = documents, size, seed, length, pad
        self.pool = pool
        self.order = Shuffled(len(documents), seed)
        self.tokens_per_step = size * length
        self.rows_per_epoch = len(documents)
        self._pool = lru_cache(maxsize=2)(self._sorted_pool)

    def share(self, step: int, rows: range) -> dict[str, Tensor]:
        """Return the batch of ``step``, of the pool it lies in."""
        numbers = self._pool(step // self.pool)[step % self.pool]
        made = [_shifted(self.documents[number], 0, self.length, at in rows) for at, number in enumerate(numbers)]
        width = max(len(ids) for ids, _ in made)
        ids, targets = np.full((self.size, width), self.pad), np.full((self.size, width), IGNORE)
        real = np.zeros((self.size, width), bool)
        for place, (row_ids, row_targets) in enumerate(made):
            here = place, slice(len(row_ids))
            ids[here], targets[here], real[here] = row_ids, row_targets, True
        return _tensors(ids=ids, targets=targets) | {"real": torch.from_numpy(real)}

    def _sorted_pool(self, pool: int) -> NDArray[np.int64]:
        """Return the document numbers of a pool, [batch of the pool, row]."""
        count = self.pool * self.size
        numbers = self.order.items(pool * count, (pool + 1) * count)
        lengths = np.array([min(len(self.documents[number]), self.length) for number in numbers])
        batches = numbers[np.argsort(lengths, kind="stable")].reshape(self.pool, self.size)
        # A seed beside that of the epochs: pools must not repeat the order of the documents.
        return batches[np.random.default_rng([self.seed, pool, 1]).permutation(self.pool)]


class SequentialWindows(PureSource):
    """A token stream from its beginning to its end, for evaluation: each target counts exactly once.

    A window starts every ``stride`` tokens (by default ``length``: no overlap). With a smaller stride each
    target but those of the first window has at least ``length - stride`` tokens before it; only new targets
    count. The last batch may have fewer rows.
    """

    def __init__(self, ids: Stream, length: int, size: int, stride: int | None = None) -> None:
        _need(len(ids), 2)
        self.ids, self.length, self.size, self.stride = _sliceable(ids), length, size, stride or length
        if not 1 <= self.stride <= length:
            raise UsageError(f"a stride of {stride} for windows of {length}", "use a stride from 1 to the length")
        beyond_first = max(0, len(self.ids) - 1 - length)
        self.windows = 1 + -(-beyond_first // self.stride)
        self.tokens_per_step = size * length
        self.rows_per_epoch = self.windows

    def __len__(self) -> int:
        return -(-self.windows // self.size)

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        return (self.batch(step) for step in range(len(self)))

    def batch(self, step: int) -> dict[str, Tensor]:
        """Return the windows of ``step``, from 0 to below ``len(self)``."""
        numbers = range(step * self.size, min((step + 1) * self.size, self.windows))
        if step < 0 or not numbers:
            raise UsageError(f"batch {step} of {len(self)}", "evaluation ends after the last one")
        ids = np.zeros((len(numbers), self.length), np.int64)
        targets = np.full((len(numbers), self.length), IGNORE, np.int64)
        for row, number in enumerate(numbers):
            start = number * self.stride
            seen = self.ids[start : start + self.length + 1]
            width = len(seen) - 1
            ids[row, :width], targets[row, :width] = seen[:-1], seen[1:]
            targets[row, : self.length - self.stride if number else 0] = IGNORE
        return _tensors(ids=ids, targets=targets)


def _shifted(document: Ids, start: int, stop: int, read: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the tokens from start to stop, 0 unless ``read``, and the token after each, IGNORE at the end."""
    there = min(len(document), stop + 1) - start
    seen = np.asarray(document[start : stop + 1], np.int64) if read else np.zeros(there, np.int64)
    ids = seen[: stop - start]
    targets = np.full(len(ids), IGNORE, np.int64)
    targets[: len(seen) - 1] = seen[1:]
    return ids, targets


def _sliceable(ids: Stream) -> NDArray[Any] | ShardSet:
    return ids if isinstance(ids, ShardSet) else np.asanyarray(ids)


def _need(count: int, needed: int, what: str = "tokens") -> None:
    if count < needed:
        raise DataError(f"the corpus has {count:,} {what}, {needed:,} are needed", "use more text or a shorter context")


def _tensors(**arrays: NDArray[Any]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array.astype(np.int64)) for name, array in arrays.items()}
