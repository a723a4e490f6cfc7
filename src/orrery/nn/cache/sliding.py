"""The store that keeps the last tokens of each row only."""

from collections.abc import Sequence

import torch
from torch import Tensor

from orrery.errors import UsageError
from orrery.nn.attention.operands import KeysValues
from orrery.nn.cache.key_value_store import KeyValueStore
from orrery.nn.cache.row_buffer import RowBuffer
from orrery.nn.cache.store import Reservation
from orrery.nn.masks import EMPTY_SLOT, TokenPositions


class SlidingStore(KeyValueStore):
    """The last ``window`` tokens of each row: token n stands in slot ``n mod window``, where an older one stood.

    A call sees the old slots and, after them, its own tokens, so that a step may be of any length.
    """

    def __init__(self, rows: int, capacity: int, window: int, *, device: torch.device | None = None) -> None:
        super().__init__(rows, min(window, capacity), device)
        self.window = window

    @property
    def slots(self) -> int:
        """Return how many tokens of a row it holds."""
        return self.positions_BS.shape[1] - 1

    @property
    def kind(self) -> str:
        """Return the window."""
        return f"sliding ({self.window})"

    def refuse_to_forget(self, before: Sequence[int], after: Sequence[int]) -> None:
        """Refuse to cut a row whose older tokens have been overwritten.

        Raises:
            UsageError: a row that is longer than the window would get shorter.
        """
        slots = self.positions_BS.shape[1] - 1
        if any(new < old and old > slots for old, new in zip(before, after, strict=True)):
            raise UsageError(
                f"a sliding cache of {slots} tokens cannot go back: older tokens have been overwritten",
                "start again from the shorter text, or use a growing cache",
            )

    def reserve(self, call: Reservation) -> TokenPositions:
        """Show the old slots and the new tokens; give the last tokens of each row their slots."""
        slots = self.positions_BS.shape[1] - 1
        shown_BS = torch.cat([self.positions_BS[:, :slots], call.positions_BL], dim=1)
        kept_BL = call.positions_BL >= call.after_B[:, None] - slots
        if call.real_BL is not None:
            kept_BL = kept_BL & call.real_BL
        self.where_BL = (call.positions_BL % slots).masked_fill(~kept_BL, slots)
        kept_positions_BL = call.positions_BL.masked_fill(~kept_BL, EMPTY_SLOT)
        self.positions_BS = self.positions_BS.scatter(1, self.where_BL, kept_positions_BL)
        return TokenPositions(shown_BS)

    def extend(self, mask: str, depth: int, k_BKLC: Tensor, v_BKLE: Tensor) -> KeysValues:
        """Return the old slots and the new tokens, then let the new ones take their slots."""
        return KeysValues(self._slide(self._keys, depth, k_BKLC), self._slide(self._values, depth, v_BKLE))

    def _slide(self, buffer: RowBuffer, depth: int, x_BKLC: Tensor) -> Tensor:
        B, K, _, C = x_BKLC.shape
        slots = self.positions_BS.shape[1] - 1
        old = buffer.depths.get(depth)
        old_BKSC = x_BKLC.new_zeros(B, K, slots, C) if old is None else old[:, :, :slots]
        shown_BKSC = torch.cat([old_BKSC, x_BKLC], dim=2)
        self._scatter(buffer, depth, x_BKLC, self.where_BL)
        return shown_BKSC

    def _match(self, other: KeyValueStore) -> None:
        assert self.positions_BS.shape[1] == other.positions_BS.shape[1], "one window and capacity, one number of slots"
