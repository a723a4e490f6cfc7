"""The definition beside a fused kernel: scores and patterns, a piece at a time, compared with what it put out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.inspection.checks import Mixing
from orrery.inspection.recorder import Place, Recorder
from orrery.nn.attention.kernels import Kernel, eager
from orrery.nn.attention.operands import KeysValues, Operands, unseen
from orrery.nn.masks import BoundMask

Shape: TypeAlias = tuple[int, int, int, int]
_EVERY = slice(None)
LARGEST = 2**20
"""The most scores that are in memory at once; the definition holds about five tensors of this size."""


@dataclass(frozen=True)
class Definition:
    """One attention of a pass, whose scores and patterns are computed when they are asked for, a part at a time.

    Attributes:
        q_BHLC: its queries, and ``kv`` its keys and values.
        operands: mask, bias, scale, sinks and cap.
        shape: of its scores.
    """

    q_BHLC: Float[Tensor, "B H L C"]
    kv: KeysValues
    operands: Operands
    shape: Shape

    @torch.no_grad()
    def part(self, name: str, place: Place) -> Float[Tensor, "B h l S"]:
        """Return ``scores`` or ``pattern`` of some heads and queries, ``(rows, heads, queries)``."""
        seen: dict[str, Tensor] = {}

        def keep(name: str, value: Tensor) -> Tensor:
            seen[name] = value
            return value

        _defined(place, self.shape, self.q_BHLC, self.kv, self.operands._replace(tap=keep))
        return seen[name]

    def whole(self, name: str) -> Float[Tensor, "B H L S"]:
        """Return all of it, the same bits as a trace keeps: the pieces are the same."""
        filled: Tensor | None = None
        for place in pieces(self.shape):
            value = self.part(name, place)
            filled = value.new_empty(self.shape) if filled is None else filled
            filled[place] = value
        assert filled is not None
        return filled

    def rows(self, name: str, head: int, rows: slice) -> Float[Tensor, "l S"]:
        """Return some queries of one head, computed in pieces that fit."""
        step = max(1, LARGEST // self.shape[3])
        starts = range(rows.start, rows.stop, step)
        parts = [
            self.part(name, (slice(0, 1), slice(head, head + 1), slice(start, min(start + step, rows.stop))))[0, 0]
            for start in starts
        ]
        return torch.cat(parts)


class DefinitionBeside:
    """A kernel with the eager definition beside it, which shows scores and patterns and decides nothing.

    The definition takes heads and queries in pieces, so that the pattern of a layer is whole only where it is kept.
    Where an edit reaches scores or patterns the definition runs in place of the kernel.
    Shapes: q ``[B, H, L, C]``, k ``[B, K, S, C]``, v ``[B, K, S, E]`` to ``[B, H, L, E]``.

    Attributes:
        replaced: whether the definition has run in place of the kernel.
        definitions: by the key of an attention, what computes its scores and patterns again, where ``defer`` is said.
    """

    def __init__(self, kernel: Kernel, recorder: Recorder, mixing: Mixing, *, defer: bool = False) -> None:
        self.kernel, self.recorder, self.mixing, self.defer = kernel, recorder, mixing, defer
        self.replaced = False
        self.definitions: dict[str, Definition] = {}

    def __call__(
        self,
        q_BHLC: Float[Tensor, "B H L C"],
        kv: KeysValues,
        operands: Operands,
    ) -> Float[Tensor, "B H L E"]:
        """Return what the kernel puts out, or what the definition makes of edited scores and patterns."""
        if self.recorder.edits(operands.tap, "scores", "pattern"):
            self.replaced = True
            return eager(q_BHLC, kv, operands)
        # What the kernel would show itself comes from the definition.
        mixed_BHLE = self.kernel(q_BHLC, kv, operands._replace(tap=unseen))
        furthest: Tensor | None = None
        shape = (*q_BHLC.shape[:3], kv.k_BKSC.shape[2])
        if self.defer:
            key = self.recorder.key(operands.tap, "pattern").rpartition(".")[0]
            self.definitions[key] = Definition(q_BHLC, kv, operands, shape)
        for place in pieces(shape):
            with self.recorder.part(place, shape[:3]):
                defined_BHLE = _defined(place, shape, q_BHLC, kv, operands)
            difference = (defined_BHLE - _part(mixed_BHLE, place)).abs().max()
            furthest = difference if furthest is None else torch.maximum(furthest, difference)
        assert furthest is not None
        self.mixing.add(furthest, mixed_BHLE)
        return mixed_BHLE


class DefinitionItself:
    """The definition as the kernel, which holds what computes each attention again; an edit of scores is not held.

    Shapes: as of `DefinitionBeside`.

    Attributes:
        definitions: by the key of an attention, where ``defer`` is said.
    """

    def __init__(self, recorder: Recorder, *, defer: bool = False) -> None:
        self.recorder, self.defer = recorder, defer
        self.replaced = False
        self.definitions: dict[str, Definition] = {}

    def __call__(
        self,
        q_BHLC: Float[Tensor, "B H L C"],
        kv: KeysValues,
        operands: Operands,
    ) -> Float[Tensor, "B H L E"]:
        """Return what the definition gives."""
        if self.defer and not self.recorder.edits(operands.tap, "scores", "pattern"):
            key = self.recorder.key(operands.tap, "pattern").rpartition(".")[0]
            self.definitions[key] = Definition(q_BHLC, kv, operands, (*q_BHLC.shape[:3], kv.k_BKSC.shape[2]))
        return eager(q_BHLC, kv, operands)


def pieces(shape: Shape) -> Iterator[Place]:
    """Cut scores ``[B, H, L, S]`` into pieces of at most ``LARGEST``: all, or queries of one head, one at least."""
    B, H, L, S = shape
    if B * H * L * S <= LARGEST:
        yield _EVERY, slice(0, H), slice(0, L)
        return
    step = max(1, LARGEST // (B * S))
    for head in range(H):
        for start in range(0, L, step):
            yield _EVERY, slice(head, head + 1), slice(start, min(start + step, L))


def _defined(place: Place, shape: Shape, q_BHLC: Tensor, kv: KeysValues, operands: Operands) -> Tensor:
    """Return what the definition puts out for some of the heads and queries."""
    _, heads, rows = place
    shared = shape[1] // kv.k_BKSC.shape[1]
    keys = slice(heads.start // shared, (heads.stop - 1) // shared + 1)
    bias_BHLS, sinks_H = operands.bias_BHLS, operands.sinks_H
    part = operands._replace(
        mask=_rows_of_mask(operands.mask, rows, shape, q_BHLC.device),
        bias_BHLS=None if bias_BHLS is None else _part(bias_BHLS, place),
        sinks_H=None if sinks_H is None else sinks_H[heads],
    )
    return eager(_part(q_BHLC, place), KeysValues(_along(kv.k_BKSC, 1, keys), _along(kv.v_BKSE, 1, keys)), part)


def _rows_of_mask(mask: BoundMask, rows: slice, shape: Shape, device: torch.device) -> BoundMask:
    """Return the mask of some of the queries; a plain one gets a matrix for them alone."""
    if rows.stop - rows.start == shape[2]:
        return mask
    if mask.is_causal and mask.dense is None:
        place_S = torch.arange(shape[3], device=device)
        return BoundMask(dense=(place_S <= place_S[rows, None])[None, None], is_causal=False)
    return BoundMask(dense=None if mask.dense is None else _along(mask.dense, 2, rows), is_causal=False)


def _part(x_BHLE: Tensor, place: Place) -> Tensor:
    """Return some of the heads and queries."""
    return _along(_along(x_BHLE, 1, place[1]), 2, place[2])


def _along(x: Tensor, axis: int, part: slice) -> Tensor:
    """Return a part along one axis; where it has one place, that serves all."""
    return x if x.shape[axis] in (1, part.stop - part.start) else x.narrow(axis, part.start, part.stop - part.start)
