"""The store whose rows hold pages of a pool: rows that begin alike share them, and none is ever moved."""

from collections.abc import Sequence
from weakref import finalize

import torch
from jaxtyping import Int
from torch import Tensor

from orrery.nn.attention.operands import KeysValues
from orrery.nn.cache.keys_only import KeysOnly
from orrery.nn.cache.pages import SPARE, PagePool
from orrery.nn.cache.store import Reservation, Store
from orrery.nn.masks import EMPTY_SLOT, TokenPositions


class PagedStore(KeysOnly):
    """A page table a row; token n of a row stands in slot ``n mod size`` of its page ``n // size``.

    Rows that are repeated, forked or joined go on with the same pages; the first of them that writes into a page which
    others hold too takes a copy of that page (copy on write). Kernels are given what a gather of the pages returns.

    Args:
        rows: how many, empty.
        pool: whose pages; by default one of its own.
        device: where positions are.
    """

    def __init__(self, rows: int, pool: PagePool | None = None, *, device: torch.device | None = None) -> None:
        self.pool = PagePool() if pool is None else pool
        self._device = device
        self._tables: list[list[int]] = [[] for _ in range(rows)]
        # The tables are changed in place for as long as the store lives; then their pages are free.
        finalize(self, _release, self.pool, self._tables)
        self._table_BP = torch.zeros(rows, 0, dtype=torch.long, device=device)
        self._slots_N = torch.zeros(0, dtype=torch.long, device=device)
        self._shown, self._even = 0, False

    @property
    def kind(self) -> str:
        """Return the size of a page."""
        return f"paged ({self.pool.size})"

    @property
    def pages(self) -> Sequence[Sequence[int]]:
        """The numbers of each row's pages."""
        return self._tables

    def refuse_to_forget(self, before: Sequence[int], after: Sequence[int]) -> None:
        """Refuse nothing: every token is still there."""

    def reserve(self, call: Reservation) -> TokenPositions:
        """Take the pages that the new tokens need, those of their own where others hold them too.

        Raises:
            RunError: the pool has no page left.
        """
        changed = False
        for table, before, after in zip(self._tables, call.before, call.after, strict=True):
            changed |= self._extend_table(table, before, after)
        if changed or len(self._table_BP) != len(self._tables):
            self._table_BP = self._rendered()
        self._shown = max(call.after, default=0)
        self._even = call.real_BL is None and len(set(call.before)) < 2
        size, places_BL = self.pool.size, call.positions_BL
        if call.real_BL is not None:
            places_BL = places_BL.masked_fill(~call.real_BL, 0)
        slots_BL = self._table_BP.gather(1, places_BL // size) * size + places_BL % size
        if call.real_BL is not None:
            slots_BL = slots_BL.masked_fill(~call.real_BL, SPARE * size)
        self._slots_N = slots_BL.flatten()
        shown_S = torch.arange(self._shown, device=call.after_B.device)
        return TokenPositions(torch.where(shown_S < call.after_B[:, None], shown_S, EMPTY_SLOT))

    def shows_only_past(self) -> bool:
        """Return whether all rows are equally long, without padding."""
        return self._even

    def extend(self, mask: str, depth: int, k_BKLC: Tensor, v_BKLE: Tensor) -> KeysValues:
        """Write into the reserved slots and return the rows' pages, gathered."""
        pool = self.pool
        pool.write(pool.keys, depth, k_BKLC, self._slots_N)
        pool.write(pool.values, depth, v_BKLE, self._slots_N)
        read = (pool.read(storages, depth, self._table_BP) for storages in (pool.keys, pool.values))
        return KeysValues(*(x_BKSC.narrow(2, 0, self._shown) for x_BKSC in read))

    def forget(self, lengths: Sequence[int], lengths_B: Int[Tensor, "B"]) -> None:
        """Let go of the pages that lie beyond these lengths."""
        for table, length in zip(self._tables, lengths, strict=True):
            needed = -(-length // self.pool.size)
            self.pool.release(table[needed:])
            del table[needed:]
        self._stale()

    def select(self, rows: Sequence[int], rows_N: Int[Tensor, "N"]) -> None:
        """Keep the tables of the given rows."""
        kept = [list(self._tables[row]) for row in rows]
        _hold(self.pool, kept)
        _release(self.pool, self._tables)
        self._tables[:] = kept
        self._stale()

    def join(self, other: Store) -> None:
        """Append the tables of another store; pages of another pool are copied."""
        assert isinstance(other, PagedStore)
        tables = [list(table) for table in other._tables]
        if other.pool is self.pool:
            _hold(self.pool, tables)
        else:
            known = {page: self.pool.bring(other.pool, page) for page in {page for table in tables for page in table}}
            tables = [[known[page] for page in table] for table in tables]
            _hold(self.pool, tables)
            self.pool.release(known.values())
        _release(other.pool, other._tables)
        other._tables.clear()
        self._tables += tables
        self._stale()

    def copy(self, rows: Sequence[int] | None = None) -> "PagedStore":
        """Return a store of the given rows that holds the same pages."""
        new = PagedStore(0, self.pool, device=self._device)
        new._tables += [list(self._tables[row]) for row in (range(len(self._tables)) if rows is None else rows)]
        _hold(self.pool, new._tables)
        new._stale()
        return new

    def bytes(self) -> int:
        """Return the bytes of the pages that the rows hold, each counted once."""
        return len({page for table in self._tables for page in table}) * self.pool.page_bytes

    def _extend_table(self, table: list[int], before: int, after: int) -> bool:
        """Let a row have pages of its own for the tokens from ``before`` to ``after``; return whether some are new."""
        size, changed = self.pool.size, False
        if before < after and before % size:
            own = self.pool.own(table[before // size])
            changed, table[before // size] = own != table[before // size], own
        while len(table) * size < after:
            table.append(self.pool.take())
            changed = True
        return changed

    def _stale(self) -> None:
        """Let the next call render the tables again."""
        self._table_BP = torch.zeros(0, 0, dtype=torch.long, device=self._device)

    def _rendered(self) -> Tensor:
        """Return the tables as a tensor; a short row shows its last page again, whose tokens are hidden there."""
        longest = max(map(len, self._tables), default=0)
        rows = [table + (table[-1:] or [SPARE]) * (longest - len(table)) for table in self._tables]
        return torch.tensor(rows, dtype=torch.long).view(len(rows), longest).to(self._device, non_blocking=True)


def _hold(pool: PagePool, tables: Sequence[Sequence[int]]) -> None:
    for table in tables:
        pool.hold(table)


def _release(pool: PagePool, tables: Sequence[Sequence[int]]) -> None:
    for table in tables:
        pool.release(table)
