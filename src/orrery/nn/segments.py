"""Packed segments: the unbroken sequences inside a batch that a mixer with a state passes through, without padding."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

from orrery.nn.rehearsal import rehearsing


@dataclass(frozen=True)
class PackedSegments:
    """Where each real token of a batch stands: in which segment, and at which place of it.

    A segment is the real tokens of one document of one row, in their order. Everything here grows with the tokens
    alone: there is no matrix of pairs. The lengths are the host's, so that nobody who goes by them waits for a device.

    Attributes:
        real_BL: whether a token is in a segment at all.
        segment_BL: the number of its segment.
        place_BL: how many tokens of the segment are before it.
        row_N: the row of the batch that each segment lies in.
        token_M: the number of each real token, counted through all rows; so they come.
        lengths: the tokens of each segment, at least one.
    """

    real_BL: Bool[Tensor, "B L"]
    segment_BL: Int[Tensor, "B L"]
    place_BL: Int[Tensor, "B L"]
    row_N: Int[Tensor, "N"]
    token_M: Int[Tensor, "M"]
    lengths: tuple[int, ...]

    @staticmethod
    def of(
        real_BL: Bool[Tensor, "B L"] | None,
        documents_BL: Int[Tensor, "B L"] | None = None,
        counts: Sequence[int] | None = None,
    ) -> "PackedSegments | None":
        """Return the segments, or nothing where every row is one segment from end to end.

        ``documents_BL`` numbers the document of each token; no real token has a number below zero. ``counts`` are the
        real tokens of rows without documents that are padded on the right, where the host knows them.
        """
        if documents_BL is None:
            if real_BL is None:
                return None
            if counts is not None:
                return PackedSegments.of_lengths(real_BL, counts)
            return None if bool(real_BL.all()) else PackedSegments.of_real(real_BL)
        if real_BL is None:
            real_BL = torch.ones_like(documents_BL, dtype=torch.bool)
        if bool(real_BL.all()) and bool((documents_BL == documents_BL[:, :1]).all()):
            return None
        return PackedSegments._of_documents(real_BL, documents_BL)

    @staticmethod
    def of_real(real_BL: Bool[Tensor, "B L"]) -> "PackedSegments":
        """Return one segment a row: its real tokens."""
        if rehearsing():
            return PackedSegments.of_lengths(real_BL, [real_BL.shape[1]] * len(real_BL))
        full_B = real_BL.any(1)
        segment_BL = (full_B.cumsum(0) - 1)[:, None].expand_as(real_BL)
        lengths = tuple(length for length in real_BL.sum(1).tolist() if length)
        token_M = real_BL.flatten().nonzero()[:, 0]
        return PackedSegments(real_BL, segment_BL, real_BL.cumsum(1) - 1, full_B.nonzero()[:, 0], token_M, lengths)

    @staticmethod
    def of_lengths(real_BL: Bool[Tensor, "B L"], counts: Sequence[int]) -> "PackedSegments":
        """Return one segment a row: its first tokens, in numbers that the host knows; no device is waited for."""
        (rows, tokens), device = real_BL.shape, real_BL.device
        row_N = [row for row, count in enumerate(counts) if count]
        number_B = list(accumulate(int(count > 0) for count in counts))
        segment_BL = (_moved(torch.tensor(number_B), device) - 1)[:, None].expand_as(real_BL)
        parts = [torch.arange(row * tokens, row * tokens + counts[row]) for row in row_N]
        token_M = torch.cat(parts) if parts else torch.zeros(0, dtype=torch.long)
        place_BL = torch.arange(tokens, device=device).expand(rows, tokens)
        found_N = _moved(torch.tensor(row_N, dtype=torch.long), device)
        lengths = tuple(counts[row] for row in row_N)
        return PackedSegments(real_BL, segment_BL, place_BL, found_N, _moved(token_M, device), lengths)

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
        token_M = real_BL.flatten().nonzero()[:, 0]
        row_N = begins_BL.nonzero()[:, 0]
        length_N = torch.bincount(segment_BL.flatten()[token_M], minlength=len(row_N))
        return PackedSegments(real_BL, segment_BL, place_BL, row_N, token_M, tuple(length_N.tolist()))

    @cached_property
    def length_N(self) -> Int[Tensor, "N"]:  # noqa: N802 - a letter for its axis, as everywhere
        """The tokens of each segment, on the device."""
        return _moved(torch.tensor(self.lengths, dtype=torch.long), self.real_BL.device)

    @property
    def whole(self) -> bool:
        """Whether every row is one segment from end to end, so that nothing has to move."""
        rows, tokens = self.real_BL.shape
        return self.lengths == (tokens,) * rows

    @property
    def even(self) -> bool:
        """Whether all segments are equally long, so that they stand side by side without padding."""
        return len(set(self.lengths)) == 1

    @cached_property
    def _where(self) -> tuple[Int[Tensor, "M"], Int[Tensor, "M"]]:
        """The segment of each real token, and its place there."""
        return self.segment_BL.flatten()[self.token_M], self.place_BL.flatten()[self.token_M]

    def split(self, x_BLD: Float[Tensor, "B L D"]) -> Float[Tensor, "N T D"]:
        """Return each segment as a row of its own, padded on the right to the longest; ``pack`` pads nothing."""
        if self.whole:
            return x_BLD
        rows_NTD = x_BLD.new_zeros(len(self.lengths), max(self.lengths, default=0), x_BLD.shape[-1])
        return rows_NTD.index_put(self._where, x_BLD.flatten(0, 1)[self.token_M])

    def join(self, y_NTE: Float[Tensor, "N T E"]) -> Float[Tensor, "B L E"]:
        """Put the split segments back where they came from; what is in no segment becomes zero."""
        return y_NTE if self.whole else self.unpack(y_NTE[self._where], self.token_M)

    def pack(self, x_BLD: Float[Tensor, "B L D"]) -> PackedSequence:
        """Return the first tokens of all segments, then all second tokens, and so on; the longest segment leads."""
        sizes_T, order_N, rank_N, token_M = self._packing
        return PackedSequence(x_BLD.flatten(0, 1).index_select(0, token_M), sizes_T, order_N, rank_N)

    def unpack(self, y_ME: Float[Tensor, "M E"], token_M: Int[Tensor, "M"] | None = None) -> Float[Tensor, "B L E"]:
        """Put packed tokens back where they came from; what is in no segment becomes zero.

        ``token_M`` says where that is, where they do not come as ``pack`` gave them.
        """
        rows, tokens = self.real_BL.shape
        index_M = self._packing[3] if token_M is None else token_M
        y_PE = y_ME.new_zeros(rows * tokens, y_ME.shape[-1]).index_copy(0, index_M, y_ME)
        return y_PE.view(rows, tokens, -1)

    @cached_property
    def _packing(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return how many segments reach each place, their order and its inverse, and the token in each slot."""
        length_N, order_N = torch.sort(torch.tensor(self.lengths, dtype=torch.long), descending=True)
        rank_N = torch.empty_like(order_N).scatter_(0, order_N, torch.arange(len(order_N)))
        ended_T = torch.bincount(length_N)[:-1].cumsum(0)
        sizes_T = len(length_N) - ended_T
        begin_T = sizes_T.cumsum(0) - sizes_T
        order_N, rank_N, begin_T = (_moved(x, self.real_BL.device) for x in (order_N, rank_N, begin_T))
        segment_M, place_M = self._where
        slot_M = begin_T[place_M] + rank_N[segment_M]
        return sizes_T, order_N, rank_N, torch.empty_like(self.token_M).scatter_(0, slot_M, self.token_M)

    @cached_property
    def in_order(self) -> tuple[Int[Tensor, "N"], Int[Tensor, "M"], Int[Tensor, "M"]]:
        """Where each segment begins if one followed the other, the slot of each real token there, and the token.

        Tokens are counted through all rows, and so they come.
        """
        begin_N = self.length_N.cumsum(0) - self.length_N
        segment_M, place_M = self._where
        return begin_N, begin_N[segment_M] + place_M, self.token_M

    def alike(self) -> Iterator[tuple[Int[Tensor, "N"], Int[Tensor, "N T"], Bool[Tensor, "N T"]]]:
        """Yield the segments by length, so that padding at most doubles the tokens of a group.

        Of each group the numbers of its segments, the token in each place counted through all rows, and which places
        hold one; the others stand on the right.
        """
        begin_N, slot_M, at_M = self.in_order
        token_M = torch.empty_like(at_M).scatter_(0, slot_M, at_M)
        sizes = [length.bit_length() for length in self.lengths]
        for size in sorted(set(sizes)):
            numbers = [number for number, own in enumerate(sizes) if own == size]
            one_N = _moved(torch.tensor(numbers), at_M.device)
            place_T = torch.arange(max(self.lengths[number] for number in numbers), device=at_M.device)
            held_NT = place_T < self.length_N[one_N][:, None]
            slot_NT = (begin_N[one_N][:, None] + place_T).clamp(max=len(at_M) - 1)
            yield one_N, token_M[slot_NT], held_NT


def _moved(x: Tensor, device: torch.device) -> Tensor:
    """Return a tensor of the host on a device, which nobody waits for."""
    return x.to(device, non_blocking=True)
