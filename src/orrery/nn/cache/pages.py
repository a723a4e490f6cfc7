"""Pages of keys and values that the rows of many sessions share: what begins alike is stored once."""

from collections.abc import Iterable
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import RunError

SPARE = 0
"""The number of the page that padding is written to; no row owns it."""
Storages = dict[int, Tensor]


@final
class PagePool:
    """Physical pages of ``size`` tokens each, by number, and how many rows hold each (Kwon et al. 2023, section 4).

    A page that nobody holds any more is the next to be taken. Shapes: keys and values ``[K, pages, size, C]`` a depth.

    Args:
        size: tokens of a page.
        most: pages that may be taken at once; by default as many as are asked for.

    Attributes:
        keys: the keys of all pages, by depth.
        values: the values of all pages, by depth.
    """

    def __init__(self, size: int = 16, most: int | None = None) -> None:
        self.size, self.most = size, most
        self.keys: Storages = {}
        self.values: Storages = {}
        self._holders: list[int] = [1]
        self._free: list[int] = []

    @property
    def taken(self) -> int:
        """How many pages are held by rows."""
        return len(self._holders) - 1 - len(self._free)

    @property
    def page_bytes(self) -> int:
        """The bytes of one page at all depths, keys and values together."""
        return sum(x[:, SPARE].nbytes for storages in (self.keys, self.values) for x in storages.values())

    def take(self) -> int:
        """Return the number of an empty page that nobody else holds.

        Raises:
            RunError: all are held.
        """
        if self._free:
            page = self._free.pop()
        elif self.most is not None and self.taken >= self.most:
            raise RunError(
                f"all {self.most:,} pages of the cache are taken", "wait until rows end, or allow more pages"
            )
        else:
            page = len(self._holders)
            self._holders.append(0)
        self._holders[page] = 1
        for storages in (self.keys, self.values):
            for depth, x in storages.items():
                storages[depth] = x = self._with_room(x)
                x[:, page] = 0  # what is hidden is multiplied with 0, and what stood here may be no number
        return page

    def hold(self, pages: Iterable[int]) -> None:
        """Count one more holder of each page."""
        for page in pages:
            self._holders[page] += 1

    def release(self, pages: Iterable[int]) -> None:
        """Count one holder less; a page without one is free."""
        for page in pages:
            self._holders[page] -= 1
            if not self._holders[page]:
                self._free.append(page)

    def own(self, page: int) -> int:
        """Return a page of the same content into which one holder may write: the page itself where it has no other."""
        if self._holders[page] == 1:
            return page
        new = self.take()
        for x in (*self.keys.values(), *self.values.values()):
            x[:, new] = x[:, page]
        self.release([page])
        return new

    def bring(self, other: "PagePool", page: int) -> int:
        """Return a page here with the content of one of another pool."""
        new = self.take()
        for mine, theirs in ((self.keys, other.keys), (self.values, other.values)):
            for depth, x in theirs.items():
                self._storage(mine, depth, x[:, SPARE])[:, new] = x[:, page]
        return new

    def write(
        self, storages: Storages, depth: int, x_BKLC: Float[Tensor, "B K L C"], slots_N: Int[Tensor, "N"]
    ) -> None:
        """Write what a depth computed for new tokens into slots ``[B L]``, counted over all pages."""
        x_KNC = x_BKLC.transpose(0, 1).flatten(1, 2)
        storage = self._storage(storages, depth, x_KNC)
        storage.flatten(1, 2).index_copy_(1, slots_N, x_KNC)

    def read(self, storages: Storages, depth: int, table_BP: Int[Tensor, "B P"]) -> Float[Tensor, "B K S C"]:
        """Return the content of each row's pages, one behind the other, gathered."""
        x = storages[depth]
        return x.index_select(1, table_BP.flatten()).unflatten(1, table_BP.shape).flatten(2, 3).transpose(0, 1)

    def _storage(self, storages: Storages, depth: int, like_KNC: Tensor) -> Tensor:
        """Return the pages of a depth, made where there are none."""
        if depth not in storages:
            pages = len(self._holders) if self.most is None else self.most + 1
            storages[depth] = like_KNC.new_zeros(like_KNC.shape[0], pages, self.size, like_KNC.shape[-1])
        return storages[depth]

    def _with_room(self, x: Tensor) -> Tensor:
        """Return a storage that has every page, twice as large where it has not."""
        have, needed = x.shape[1], len(self._holders)
        if needed <= have:
            return x
        return torch.cat([x, x.new_zeros(x.shape[0], max(needed, 2 * have) - have, *x.shape[2:])], dim=1)
