"""The caches that keep every token: one grows, the other has its size from the start."""

from collections.abc import Iterable, Mapping

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.functional import pad

from orrery.nn.attention.operands import KeysValues
from orrery.nn.cache.stored import Store, Stored
from orrery.nn.masks import EMPTY_SLOT, TokenPositions


class SlotCache(Stored):
    """Slots ``0, 1, 2, ...`` of each row hold its tokens in order.

    The growing kind allocates as it goes and shows the filled part; the static kind (``static=True``) allocates
    ``capacity`` slots once and always shows all of them, so that a compiled step sees one shape for ever.
    """

    def __init__(self, rows: int, capacity: int, *, device: torch.device | None = None, static: bool = False):
        super().__init__(rows, capacity, capacity if static else min(capacity, 63), device)
        self.static = static
        self.shown = 0
        self.where_BL = torch.zeros(rows, 0, dtype=torch.long, device=device)
        self.start: int | None = None

    @property
    def kind(self) -> str:
        """Return growing or static."""
        return "static" if self.static else "growing"

    def refuse_to_forget(self, lengths_B: Int[Tensor, "B"]) -> None:
        """Refuse nothing: every token is still there."""

    def reserve(
        self, places: TokenPositions, real_BL: Bool[Tensor, "B L"] | None, masks: Iterable[str]
    ) -> Mapping[str, TokenPositions]:
        """Reserve the slots after each row's last token; padding, on either side, takes none.

        Raises:
            UsageError: a row would pass the capacity.
        """
        before_B, tokens = self.lengths_B, places.positions.shape[1]
        self.where_BL = self.next_positions(tokens, places.positions.device)
        positions_BL = places.positions.expand_as(self.where_BL)
        after_B = before_B + tokens if real_BL is None else before_B + real_BL.sum(1)
        self._fit(int(after_B.max()))
        self.lengths_B = after_B
        if real_BL is None:
            shortest, longest = (int(x) for x in before_B.aminmax())
            self.start = None if self.static or shortest != longest else shortest
        else:
            self.start, spare = None, self.positions_BS.shape[1] - 1
            self.where_BL = (before_B[:, None] + real_BL.cumsum(1) - 1).masked_fill(~real_BL, spare)
            positions_BL = positions_BL.masked_fill(~real_BL, EMPTY_SLOT)
        self.positions_BS.scatter_(1, self.where_BL, positions_BL)
        return dict.fromkeys(masks, TokenPositions(self.positions_BS[:, : self.shown]))

    def extend(self, mask: str, depth: int, k_BKLC: Tensor, v_BKLE: Tensor) -> KeysValues:
        """Write into the reserved slots and return the shown part."""
        return KeysValues(self._write(self.keys, depth, k_BKLC), self._write(self.values, depth, v_BKLE))

    def _write(self, store: Store, depth: int, x_BKLC: Tensor) -> Tensor:
        if self.start is None or depth not in store:
            self._scatter(store, depth, x_BKLC, self.where_BL)
        else:  # all rows are equally long: a plain copy, several times faster than a scatter
            store[depth][:, :, self.start : self.start + x_BKLC.shape[2]] = x_BKLC
        return store[depth][:, :, : self.shown]

    def _fit(self, needed: int) -> None:
        """Show ``needed`` slots, all where they are static, doubling the storage where it is too small."""
        self._refuse_beyond(needed)
        have = self.positions_BS.shape[1]
        self.shown = self._capacity if self.static else needed
        if needed + 1 > have:
            self._pad(min(self._capacity + 1, max(needed + 1, 2 * have)) - have)

    def _pad(self, slots: int) -> None:
        self.positions_BS = pad(self.positions_BS, (0, slots), value=EMPTY_SLOT)
        self.keys = {d: pad(x, (0, 0, 0, slots)) for d, x in self.keys.items()}
        self.values = {d: pad(x, (0, 0, 0, slots)) for d, x in self.values.items()}

    def _empty(self) -> "SlotCache":
        return SlotCache(0, self._capacity, device=self.lengths_B.device, static=self.static)
