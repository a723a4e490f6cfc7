"""The stores that keep every token: one grows, the other has its size from the start."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

from orrery.nn.attention.operands import KeysValues
from orrery.nn.cache.key_value_store import KeyValueStore
from orrery.nn.cache.row_buffer import RowBuffer
from orrery.nn.cache.store import Reservation
from orrery.nn.masks import EMPTY_SLOT, TokenPositions


class SlotStore(KeyValueStore):
    """Slots ``0, 1, 2, ...`` of each row hold its tokens in order.

    The growing kind allocates as it goes and shows the filled part; the static kind (``static=True``) allocates
    ``capacity`` slots once and always shows all of them, so that a compiled step sees one shape for ever.
    """

    def __init__(self, rows: int, capacity: int, *, device: torch.device | None = None, static: bool = False) -> None:
        super().__init__(rows, capacity if static else min(capacity, 63), device)
        self.capacity, self.static = capacity, static
        self.shown = 0
        self.start: int | None = None

    @property
    def kind(self) -> str:
        """Return growing or static."""
        return "static" if self.static else "growing"

    def refuse_to_forget(self, before: Sequence[int], after: Sequence[int]) -> None:
        """Refuse nothing: every token is still there."""

    def reserve(self, call: Reservation) -> TokenPositions:
        """Reserve the slots after each row's last token; padding, on either side, takes none."""
        self._fit(max(call.after, default=0))
        self.where_BL, self.start = call.positions_BL, None
        if call.real_BL is not None:
            self.where_BL = self.where_BL.masked_fill(~call.real_BL, self.positions_BS.shape[1] - 1)
        elif not self.static and min(call.before, default=0) == max(call.before, default=0):
            self.start = max(call.before, default=0)
        self.positions_BS.scatter_(1, self.where_BL, call.positions_BL)
        return TokenPositions(self.positions_BS.narrow(1, 0, self.shown))

    def shows_only_past(self) -> bool:
        """Return whether all rows are equally long, without padding, and no empty slot is shown."""
        return self.start is not None

    def extend(self, mask: str, depth: int, k_BKLC: Tensor, v_BKLE: Tensor) -> KeysValues:
        """Write into the reserved slots and return the shown part."""
        return KeysValues(self._write(self._keys, depth, k_BKLC), self._write(self._values, depth, v_BKLE))

    def _write(self, buffer: RowBuffer, depth: int, x_BKLC: Tensor) -> Tensor:
        depths = buffer.depths
        if self.start is None or depth not in depths:
            self._scatter(buffer, depth, x_BKLC, self.where_BL)
        else:  # all rows are equally long: a plain copy, several times faster than a scatter
            depths[depth].narrow(2, self.start, x_BKLC.shape[2]).copy_(x_BKLC)
        return depths[depth].narrow(2, 0, self.shown)

    def _fit(self, needed: int) -> None:
        """Show ``needed`` slots, all where they are static, doubling the storage where it is too small."""
        have = self.positions_BS.shape[1]
        self.shown = self.capacity if self.static else needed
        if needed + 1 > have:
            self._pad(min(self.capacity + 1, max(needed + 1, 2 * have)) - have)

    def _match(self, other: KeyValueStore) -> None:
        assert isinstance(other, SlotStore)
        have, others = self.positions_BS.shape[1], other.positions_BS.shape[1]
        self._pad(max(0, others - have), len(other.positions_BS))
        other._pad(max(0, have - others))

    def _pad(self, slots: int, rows: int = 0) -> None:
        """Append slots to the storage, and have room for so many rows more."""
        if slots:
            self.positions_BS = pad(self.positions_BS, (0, slots), value=EMPTY_SLOT)
            self._keys.widen(slots, rows)
            self._values.widen(slots, rows)
