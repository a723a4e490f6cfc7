"""Packed segments: the unbroken sequences inside a batch that a recurrence passes through, without padding."""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from orrery.nn.masks import BoundMask


@dataclass(frozen=True)
class PackedSegments:
    """Where each real token of a batch stands: in which segment, and at which place of it.

    A mask says it all: a token's segment begins at the first token that it may see, and those it sees are before it.

    Attributes:
        real_BL: whether a token is in a segment at all.
        segment_BL: the number of its segment.
        place_BL: how many tokens of the segment are before it.
        row_N: the row of the batch that each segment lies in.
        length_N: the tokens of each segment, at least one.
    """

    real_BL: Bool[Tensor, "B L"]
    segment_BL: Int[Tensor, "B L"]
    place_BL: Int[Tensor, "B L"]
    row_N: Int[Tensor, "N"]
    length_N: Int[Tensor, "N"]

    @staticmethod
    def of(mask: BoundMask, rows: int, tokens: int) -> "PackedSegments | None":
        """Return the segments under a causal mask, or nothing where every row is one segment from end to end."""
        if mask.dense is None:
            return None
        seen_BLL = mask.dense[:, 0].expand(rows, tokens, tokens)
        real_BL = seen_BLL.diagonal(dim1=1, dim2=2)
        if bool(real_BL.all()) and bool(seen_BLL[:, :, 0].all()):
            return None
        first_BL = seen_BLL.int().argmax(-1)
        begins_BL = real_BL & (first_BL == torch.arange(tokens, device=real_BL.device))
        number_BL = begins_BL.flatten().cumsum(0).view_as(begins_BL) - 1
        segment_BL = number_BL.gather(1, first_BL)
        length_N = torch.bincount(segment_BL[real_BL], minlength=int(begins_BL.sum()))
        return PackedSegments(real_BL, segment_BL, seen_BLL.sum(-1) - 1, begins_BL.nonzero()[:, 0], length_N)

    @staticmethod
    def of_real(real_BL: Bool[Tensor, "B L"]) -> "PackedSegments":
        """Return one segment a row: its real tokens."""
        length_B, full_B = real_BL.sum(1), real_BL.any(1)
        segment_BL = (full_B.cumsum(0) - 1)[:, None].expand_as(real_BL)
        return PackedSegments(real_BL, segment_BL, real_BL.cumsum(1) - 1, full_B.nonzero()[:, 0], length_B[full_B])

    @cached_property
    def whole(self) -> bool:
        """Whether every row is one segment from end to end, so that nothing has to move."""
        return len(self.row_N) == len(self.real_BL) and bool(self.real_BL.all())

    def split(self, x_BLD: Float[Tensor, "B L D"]) -> Float[Tensor, "N T D"]:
        """Return each segment as a row of its own, padded on the right."""
        if self.whole:
            return x_BLD
        segments, longest = len(self.length_N), int(self.length_N.max()) if len(self.length_N) else 0
        rows_NTD = x_BLD.new_zeros(segments, longest, x_BLD.shape[-1])
        return rows_NTD.index_put((self.segment_BL[self.real_BL], self.place_BL[self.real_BL]), x_BLD[self.real_BL])

    def join(self, y_NTE: Float[Tensor, "N T E"]) -> Float[Tensor, "B L E"]:
        """Put the segments back where they came from; what is in no segment becomes zero."""
        if self.whole:
            return y_NTE
        y_BLE = y_NTE.new_zeros(*self.real_BL.shape, y_NTE.shape[-1])
        found = y_NTE[self.segment_BL[self.real_BL], self.place_BL[self.real_BL]]
        return y_BLE.index_put((self.real_BL,), found)
