"""The cache that keeps the last tokens of each row only."""

from collections.abc import Iterable, Mapping

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.nn.attention.operands import KeysValues
from orrery.nn.cache.stored import Store, Stored
from orrery.nn.masks import EMPTY_SLOT, TokenPositions


class SlidingCache(Stored):
    """The last ``window`` tokens of each row: token n stands in slot ``n mod window``, where an older one stood.

    A call sees the old slots and, after them, its own tokens, so that a step may be of any length.
    """

    def __init__(self, rows: int, capacity: int, window: int, *, device: torch.device | None = None):
        super().__init__(rows, capacity, min(window, capacity), device)
        self.window = window
        self.where_BL = torch.zeros(rows, 0, dtype=torch.long, device=device)

    @property
    def kind(self) -> str:
        """Return the window."""
        return f"sliding ({self.window})"

    def refuse_to_forget(self, lengths_B: Int[Tensor, "B"]) -> None:
        """Refuse to cut a row whose older tokens have been overwritten.

        Raises:
            UsageError: a row that is longer than the window would get shorter.
        """
        slots = self.positions_BS.shape[1] - 1
        if bool(((lengths_B < self.lengths_B) & (self.lengths_B > slots)).any()):
            raise UsageError(
                f"a sliding cache of {slots} tokens cannot go back: older tokens have been overwritten",
                "start again from the shorter text, or use a growing cache",
            )

    def reserve(
        self, places: TokenPositions, real_BL: Bool[Tensor, "B L"] | None, masks: Iterable[str]
    ) -> Mapping[str, TokenPositions]:
        """Show the old slots and the new tokens; give the last tokens of each row their slots.

        Raises:
            UsageError: a row would pass the capacity.
        """
        slots = self.positions_BS.shape[1] - 1
        if real_BL is None:
            real_BL = torch.ones_like(places.positions, dtype=torch.bool).expand(len(self.lengths_B), -1)
        numbers_BL = self.lengths_B[:, None] + real_BL.cumsum(1) - 1
        after_B = self.lengths_B + real_BL.sum(1)
        self._refuse_beyond(int(after_B.max()))
        self.lengths_B = after_B
        positions_BL = places.positions.expand_as(real_BL).masked_fill(~real_BL, EMPTY_SLOT)
        shown_BS = torch.cat([self.positions_BS[:, :slots], positions_BL], dim=1)
        kept_BL = real_BL & (numbers_BL >= self.lengths_B[:, None] - slots)
        self.where_BL = (numbers_BL % slots).masked_fill(~kept_BL, slots)
        self.positions_BS = self.positions_BS.scatter(1, self.where_BL, positions_BL.masked_fill(~kept_BL, EMPTY_SLOT))
        return dict.fromkeys(masks, TokenPositions(shown_BS))

    def extend(self, mask: str, depth: int, k_BKLC: Tensor, v_BKLE: Tensor) -> KeysValues:
        """Return the old slots and the new tokens, then let the new ones take their slots."""
        return KeysValues(self._slide(self.keys, depth, k_BKLC), self._slide(self.values, depth, v_BKLE))

    def _slide(self, store: Store, depth: int, x_BKLC: Tensor) -> Tensor:
        B, K, _, C = x_BKLC.shape
        slots = self.positions_BS.shape[1] - 1
        old_BKSC = store[depth][:, :, :slots] if depth in store else x_BKLC.new_zeros(B, K, slots, C)
        shown_BKSC = torch.cat([old_BKSC, x_BKLC], dim=2)
        self._scatter(store, depth, x_BKLC, self.where_BL)
        return shown_BKSC

    def _pad(self, slots: int) -> None:
        assert slots == 0, "sliding caches of one window and capacity have one number of slots"

    def _empty(self) -> "SlidingCache":
        return SlidingCache(0, self._capacity, self.window, device=self.lengths_B.device)
