"""A decoding session: what is held of rows that a model writes, with one owner who alone may use it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import pad

from orrery.errors import UsageError
from orrery.models.calls import Numbers, on_device, on_host
from orrery.nn.cache.rows import RowCache
from orrery.nn.masks import PLAIN_FULL, BoundMask


@dataclass(frozen=True)
class Read:
    """What the encoder made of the sources: its output, and which of its places are real."""

    encoder_states_BSD: Float[Tensor, "B S D"]
    real_BS: Bool[Tensor, "B S"] | None

    @property
    def mask(self) -> BoundMask:
        """Return what every query may see of it."""
        return PLAIN_FULL if self.real_BS is None else BoundMask(dense=self.real_BS[:, None, None], is_causal=False)

    def select(self, rows_N: Int[Tensor, "N"]) -> "Read":
        """Return the given rows."""
        return Read(self.encoder_states_BSD[rows_N], None if self.real_BS is None else self.real_BS[rows_N])

    def join(self, other: "Read") -> "Read":
        """Return both sources' rows, the shorter ones padded."""
        longest = max(self.encoder_states_BSD.shape[1], other.encoder_states_BSD.shape[1])
        memory = [pad(x.encoder_states_BSD, (0, 0, 0, longest - x.encoder_states_BSD.shape[1])) for x in (self, other)]
        real = [pad(x._real(), (0, longest - x.encoder_states_BSD.shape[1])) for x in (self, other)]
        return Read(torch.cat(memory), torch.cat(real))

    def _real(self) -> Tensor:
        every_BS = self.encoder_states_BSD.new_ones(self.encoder_states_BSD.shape[:2], dtype=torch.bool)
        return every_BS if self.real_BS is None else self.real_BS


class DecodingSession:
    """What a model remembers of the rows that it writes, and the one handle to it.

    ``model.start`` gives a session, ``model.step`` writes into it in place. ``select``, ``reorder``, ``join`` and
    ``truncate`` hand the cache over to the session that they return: the old handle is over, and whoever uses it
    is refused by name and never answered with the numbers of other rows. ``fork`` gives a second session with a
    cache of its own; both can go on.

    Three stores stand behind it (``nn/cache/rows.py``): tokens' keys and values, the states of recurrences, and what
    cross-attention makes of the source; beside them the encoder's output and the length of each row's prefix.
    """

    def __init__(self, cache: RowCache, read: Read | None = None, prefix: Sequence[int] | None = None) -> None:
        self._cache, self._read = cache, read
        self._prefix = None if prefix is None else tuple(prefix)
        self._over: str | None = None

    @property
    def cache(self) -> RowCache:
        """Return the keys, values and states.

        Raises:
            UsageError: the session is over.
        """
        if self._over is not None:
            raise UsageError(f"this session is over: {self._over}", "use what that returned, or take a fork() before")
        return self._cache

    @property
    def read(self) -> Read:
        """Return what the encoder made of the sources.

        Raises:
            UsageError: the session is over, or the model reads no source.
        """
        if self.cache is not None and self._read is None:
            raise UsageError("this session has read no source", "start it with an encoder-decoder")
        assert self._read is not None
        return self._read

    @property
    def lengths(self) -> tuple[int, ...]:
        """Return how many tokens each row has taken."""
        return self.cache.lengths

    def select(self, rows: Numbers) -> "DecodingSession":
        """Return a session of the given rows, a subset, an order, or repetitions (beams); this one is over.

        Raises:
            UsageError: there is no such row; nothing has changed.
        """
        return self._selected(self._present(rows), "select")

    def _present(self, rows: Numbers) -> list[int]:
        """Return the numbers of rows that there are."""
        chosen, have = on_host(rows, "rows"), len(self.lengths)
        if any(row >= have for row in chosen):
            raise UsageError(f"row {max(chosen)} of a session of {have} rows", "rows are counted from 0")
        return chosen

    def _selected(self, chosen: list[int], operation: str) -> "DecodingSession":
        have = len(self.lengths)
        with self._moving(operation) as cache:
            cache.select(chosen)
            read, prefix = self._read, self._prefix
            if read is not None and chosen != list(range(have)):
                read = read.select(on_device(chosen, read.encoder_states_BSD.device))
            prefix = None if prefix is None else tuple(prefix[row] for row in chosen)
            return DecodingSession(cache, read, prefix)

    def reorder(self, rows: Numbers) -> "DecodingSession":
        """Return a session of as many rows, each the continuation of ``rows[b]``; this one is over.

        Raises:
            UsageError: it is another number of rows.
        """
        chosen = self._present(rows)
        if len(chosen) != len(self.lengths):
            raise UsageError(f"{len(chosen)} rows in the place of {len(self.lengths)}", "select() changes their number")
        return self._selected(chosen, "reorder")

    def join(self, other: "DecodingSession") -> "DecodingSession":
        """Return a session of both sessions' rows, this one's first; both are over.

        Raises:
            UsageError: they are of different kinds or capacities, or one and the same; nothing has changed.
        """
        self.cache.refuse_other_kind(other.cache)
        if other is self:
            raise UsageError("a session cannot be joined to itself", "select() repeats rows")
        with self._moving("join") as cache, other._moving("join") as more:
            cache.join(more)
            read = None if self._read is None else self._read.join(other.read)
            prefix = None if self._prefix is None or other._prefix is None else self._prefix + other._prefix
            return DecodingSession(cache, read, prefix)

    def truncate(self, lengths: Numbers) -> "DecodingSession":
        """Return a session that has forgotten what lies beyond ``lengths`` in each row; this one is over.

        Raises:
            UsageError: tokens that would be seen again are gone, or a prefix would be cut, of which every token has
                seen the rest; nothing has changed.
        """
        kept = on_host(lengths, "lengths")
        if len(kept) != len(self.lengths):
            raise UsageError(f"{len(kept)} lengths for {len(self.lengths)} rows", "give one for each row")
        begun = self._prefix or (0,) * len(kept)
        if any(new < min(whole, old) for new, whole, old in zip(kept, begun, self.lengths, strict=True)):
            raise UsageError(
                "a prefix cannot be cut: its tokens have seen all of it", "start again from the shorter text"
            )
        self.cache.refuse_to_forget(kept)
        with self._moving("truncate") as cache:
            cache.truncate(kept)
            return DecodingSession(cache, self._read, self._prefix)

    def can_take_back(self, tokens: int) -> bool:
        """Return whether so many tokens more could be written into each row and then be forgotten again.

        A recurrence cannot go back, nor can a window that has slid; then a ``fork()`` before keeps the old state.
        """
        return self.cache.can_take_back(tokens)

    def fork(self, rows: Numbers | None = None) -> "DecodingSession":
        """Return an independent session of the given rows, by default of all; this one can go on too.

        What is written from now on is copied. What was read is shared: nobody writes there.

        Raises:
            UsageError: there is no such row.
        """
        if rows is None:
            return DecodingSession(self.cache.copy(), self._read, self._prefix)
        chosen = self._present(rows)
        read = self._read
        if read is not None:
            read = read.select(on_device(chosen, read.encoder_states_BSD.device))
        prefix = None if self._prefix is None else tuple(self._prefix[row] for row in chosen)
        return DecodingSession(self.cache.copy(chosen), read, prefix)

    def bytes(self) -> int:
        """Return the bytes of keys, values and states, those of the source and the encoder's output among them."""
        return self.cache.bytes() + (0 if self._read is None else self._read.encoder_states_BSD.nbytes)

    @contextmanager
    def writing(self) -> Iterator[RowCache]:
        """Lend the cache to one step; where that fails half-way, the session is over."""
        cache = self.cache
        before = cache.lengths
        try:
            yield cache
        except BaseException:
            if cache.lengths != before:
                self._end("a step failed when it had begun to write")
            raise

    @contextmanager
    def _moving(self, operation: str) -> Iterator[RowCache]:
        """Lend the cache to an operation that moves it to another session; this one is over, whatever comes of it."""
        try:
            yield self.cache
        finally:
            self._end(f"{operation}() has taken its cache over")

    def _end(self, why: str) -> None:
        """Let go of the cache, and refuse to be used from now on."""
        self._over = why
        del self._cache, self._read
