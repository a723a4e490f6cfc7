"""Packed segments: the unbroken sequences inside a batch that a mixer with a state passes through, without padding."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence


@dataclass(frozen=True)
class PackedSegments:
    """Where each real token of a batch stands: in which segment, and at which place of it.

    A segment is the real tokens of one document of one row, in their order. Everything here grows with the tokens
    alone: there is no matrix of pairs.

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
    def of(
        real_BL: Bool[Tensor, "B L"] | None, documents_BL: Int[Tensor, "B L"] | None = None
    ) -> "PackedSegments | None":
        """Return the segments, or nothing where every row is one segment from end to end.

        ``documents_BL`` numbers the document of each token; no real token has a number below zero.
        """
        if documents_BL is None:
            return None if real_BL is None or bool(real_BL.all()) else PackedSegments.of_real(real_BL)
        if real_BL is None:
            real_BL = torch.ones_like(documents_BL, dtype=torch.bool)
        if bool(real_BL.all()) and bool((documents_BL == documents_BL[:, :1]).all()):
            return None
        return PackedSegments._of_documents(real_BL, documents_BL)

    @staticmethod
    def of_real(real_BL: Bool[Tensor, "B L"]) -> "PackedSegments":
        """Return one segment a row: its real tokens."""
        length_B, full_B = real_BL.sum(1), real_BL.any(1)
        segment_BL = (full_B.cumsum(0) - 1)[:, None].expand_as(real_BL)
        return PackedSegments(real_BL, segment_BL, real_BL.cumsum(1) - 1, full_B.nonzero()[:, 0], length_B[full_B])

    @staticmethod
    def _of_documents(real_BL: Bool[Tensor, "B L"], documents_BL: Int[Tensor, "B L"]) -> "PackedSegments":
        # Sorted by document, the tokens of each stand side by side, in their order; documents may lie in pieces.
        index_L = torch.arange(real_BL.shape[1], device=real_BL.device)
        sorted_BL, order_BL = documents_BL.masked_fill(~real_BL, -1).sort(dim=1, stable=True)
        new_BL = torch.ones_like(real_BL)
        new_BL[:, 1:] = sorted_BL[:, 1:] != sorted_BL[:, :-1]
        start_BL = torch.where(new_BL, index_L, 0).cummax(1).values
        place_BL = torch.empty_like(order_BL).scatter_(1, order_BL, index_L - start_BL)
        first_BL = torch.empty_like(order_BL).scatter_(1, order_BL, order_BL.gather(1, start_BL))
        begins_BL = real_BL & (first_BL == index_L)
        number_BL = begins_BL.flatten().cumsum(0).view_as(begins_BL) - 1
        segment_BL = number_BL.gather(1, first_BL)
        length_N = torch.bincount(segment_BL[real_BL], minlength=int(begins_BL.sum()))
        return PackedSegments(real_BL, segment_BL, place_BL, begins_BL.nonzero()[:, 0], length_N)

    @cached_property
    def whole(self) -> bool:
        """Whether every row is one segment from end to end, so that nothing has to move."""
        return len(self.row_N) == len(self.real_BL) and bool(self.real_BL.all())

    def split(self, x_BLD: Float[Tensor, "B L D"]) -> Float[Tensor, "N T D"]:
        """Return each segment as a row of its own, padded on the right to the longest; ``pack`` pads nothing."""
        if self.whole:
            return x_BLD
        segments, longest = len(self.length_N), int(self.length_N.max()) if len(self.length_N) else 0
        rows_NTD = x_BLD.new_zeros(segments, longest, x_BLD.shape[-1])
        return rows_NTD.index_put((self.segment_BL[self.real_BL], self.place_BL[self.real_BL]), x_BLD[self.real_BL])

    def join(self, y_NTE: Float[Tensor, "N T E"]) -> Float[Tensor, "B L E"]:
        """Put the split segments back where they came from; what is in no segment becomes zero."""
        if self.whole:
            return y_NTE
        y_BLE = y_NTE.new_zeros(*self.real_BL.shape, y_NTE.shape[-1])
        found = y_NTE[self.segment_BL[self.real_BL], self.place_BL[self.real_BL]]
        return y_BLE.index_put((self.real_BL,), found)

    def pack(self, x_BLD: Float[Tensor, "B L D"]) -> PackedSequence:
        """Return the first tokens of all segments, then all second tokens, and so on; the longest segment leads."""
        sizes_T, order_N, rank_N, token_M = self._packing
        return PackedSequence(x_BLD.flatten(0, 1).index_select(0, token_M), sizes_T, order_N, rank_N)

    def unpack(self, y_ME: Float[Tensor, "M E"]) -> Float[Tensor, "B L E"]:
        """Put packed tokens back where they came from; what is in no segment becomes zero."""
        rows, tokens = self.real_BL.shape
        y_PE = y_ME.new_zeros(rows * tokens, y_ME.shape[-1]).index_copy(0, self._packing[3], y_ME)
        return y_PE.view(rows, tokens, -1)

    @cached_property
    def _packing(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return how many segments reach each place, their order and its inverse, and the token in each slot."""
        length_N, order_N = torch.sort(self.length_N, descending=True)
        rank_N = torch.empty_like(order_N).scatter_(0, order_N, torch.arange(len(order_N), device=order_N.device))
        ended_T = torch.bincount(length_N)[:-1].cumsum(0)
        sizes_T = len(length_N) - ended_T
        begin_T = sizes_T.cumsum(0) - sizes_T
        at_M = self.real_BL.flatten().nonzero()[:, 0]
        slot_M = begin_T[self.place_BL.flatten()[at_M]] + rank_N[self.segment_BL.flatten()[at_M]]
        return sizes_T.cpu(), order_N, rank_N, torch.empty_like(at_M).scatter_(0, slot_M, at_M)

    @cached_property
    def in_order(self) -> tuple[Int[Tensor, "N"], Int[Tensor, "M"], Int[Tensor, "M"]]:
        """Where each segment begins if one followed the other, the slot of each real token there, and the token.

        Tokens are counted through all rows, and so they come.
        """
        begin_N = self.length_N.cumsum(0) - self.length_N
        at_M = self.real_BL.flatten().nonzero()[:, 0]
        return begin_N, begin_N[self.segment_BL.flatten()[at_M]] + self.place_BL.flatten()[at_M], at_M

    def alike(self) -> Iterator[tuple[Int[Tensor, "N"], Int[Tensor, "N T"], Bool[Tensor, "N T"]]]:
        """Yield the segments by length, so that padding at most doubles the tokens of a group.

        Of each group the numbers of its segments, the token in each place counted through all rows, and which places
        hold one; the others stand on the right.
        """
        begin_N, slot_M, at_M = self.in_order
        token_M = torch.empty_like(at_M).scatter_(0, slot_M, at_M)
        size_N = self.length_N.double().log2().floor()
        for size in size_N.unique():
            one_N = (size_N == size).nonzero()[:, 0]
            place_T = torch.arange(int(self.length_N[one_N].max()), device=one_N.device)
            held_NT = place_T < self.length_N[one_N][:, None]
            slot_NT = (begin_N[one_N][:, None] + place_T).clamp(max=len(at_M) - 1)
            yield one_N, token_M[slot_NT], held_NT
