"""The linear recurrence ``h_t = a_t h_{t-1} + b_t``, element by element: one step, all steps, or piece by piece.

Nothing divides by a product of decays, so that a decay may be as strong as it likes, zero too. Numbers may be complex.
What each way moves, in numbers read or written for every element of ``b``, without gradients:

- ``sequential``: 3, in L operations. One core is fastest so, wherever a step has a few thousand elements.
- ``parallel``: about 12, in 4 log2(L) operations: for narrow steps, and for devices on which an operation costs more
  than what it moves.
- Doubling (Hillis and Steele 1986) would take 5 log2(L), 50 at a thousand steps, and is not here.

Backwards it is the same recurrence from the end: ``g_t = dy_t + conj(a_{t+1}) g_{t+1}``, with ``db_t = g_t`` and
``da_t = g_t conj(h_{t-1})``, so that of a pass only ``a`` and ``h`` are kept.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

Piece: TypeAlias = Callable[..., tuple[Tensor, Tensor]]
"""From the tokens of a piece ``[B, T, ...]``, one tensor an input, and the state before, to outputs and a state."""

PIECE = 64
"""Tokens of a piece: the states inside 64 steps of 512 channels with 16 numbers each fill two megabytes."""

WIDE = 4096
"""Elements of a step from which a processor is faster in sequence."""


def step(a: Tensor, b: Tensor, h: Tensor) -> Tensor:
    """Return ``a h + b``, the definition."""
    return a * h + b


def sequential(a: Tensor, b: Tensor, h: Tensor) -> Tensor:
    """Return all states ``[B, L, ...]``, one step after the other.

    Args:
        a: decays, of a shape that is broadcast to that of ``b``.
        b: what is added, ``[B, L, ...]``.
        h: the state before, ``[B, ...]``.
    """
    return _run(_SEQUENCE, a, b, h)


def parallel(a: Tensor, b: Tensor, h: Tensor) -> Tensor:
    """Return all states ``[B, L, ...]``; the operations that wait for one another grow as the logarithm of L.

    Two steps are one step of their composition, ``(a2 a1, a2 b1 + b2)``: the half as many pairs give every other state,
    and one step more those between (Ladner and Fischer 1980; Blelloch 1990). Arguments as in ``sequential``.
    """
    return _run(_PAIRS, a, b, h)


def all_states(a: Tensor, b: Tensor, h: Tensor) -> Tensor:
    """Return all states the way that moves less here: ``sequential`` on a processor where steps are wide."""
    wide = b.device.type == "cpu" and b[:, :1].numel() >= WIDE
    return (sequential if wide else parallel)(a, b, h)


def chunked(piece: Piece, inputs: tuple[Tensor, ...], state: Tensor, size: int = PIECE) -> tuple[Tensor, Tensor]:
    """Return the outputs of all pieces, one behind the other, and the last state.

    A piece may make its decays, scan and read its states at once: these exist for one piece at a time, in the
    backward pass too, which computes each piece again from the state before it.

    Args:
        piece: what computes one piece; parameters it may take from around it.
        inputs: tensors ``[B, L, ...]`` that are cut into pieces.
        state: the state before.
        size: the tokens of a piece.
    """
    said, learns = [], torch.is_grad_enabled()
    for cut in zip(*(part.split(size, 1) for part in inputs), strict=True):
        if learns:
            y, state = checkpoint(piece, *cut, state, use_reentrant=False, preserve_rng_state=False)
        else:
            y, state = piece(*cut, state)
        state = state.clone()  # as a part of all states of its piece it would keep them
        said.append(y)
    return torch.cat(said, 1), state


@dataclass(frozen=True)
class _Way:
    """A way through the recurrence, and the same way through it from the end."""

    onwards: Callable[[Tensor, Tensor, Tensor], Tensor]
    back: Callable[[Tensor, Tensor], Tensor]


def _run(way: _Way, a: Tensor, b: Tensor, h: Tensor) -> Tensor:
    a, b = torch.broadcast_tensors(a, b)
    states: Tensor = _Onwards.apply(a, b, h.to(b.dtype), way)
    return states


class _Onwards(torch.autograd.Function):
    """``h_t = a_t h_{t-1} + b_t``; its backward pass is the recurrence again, and can be differentiated too."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, h: Tensor, way: _Way) -> Tensor:
        """Return all states."""
        states = way.onwards(a, b, h)
        ctx.save_for_backward(a, h, states)
        ctx.way = way
        return states

    @staticmethod
    def backward(ctx: Any, *above: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        """Return the gradients of decays, of what is added and of the first state."""
        a, h, states = ctx.saved_tensors
        a = a.conj().resolve_conj()
        g: Tensor = _Back.apply(a, above[0], ctx.way)
        before = torch.cat([h[:, None], states[:, :-1]], 1)
        return g * before.conj(), g, a[:, 0] * g[:, 0], None


class _Back(torch.autograd.Function):
    """``g_t = dy_t + a_{t+1} g_{t+1}``, from the end."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, dy: Tensor, way: _Way) -> Tensor:
        """Return what every state contributes to what comes after it."""
        g = way.back(a, dy)
        ctx.save_for_backward(a, g)
        ctx.way = way
        return g

    @staticmethod
    def backward(ctx: Any, *above: Tensor) -> tuple[Tensor, Tensor, None]:
        """Return the gradients of decays and of ``dy``."""
        a, g = ctx.saved_tensors
        v = _run(ctx.way, a.conj().resolve_conj(), above[0], torch.zeros_like(g[:, 0]))
        before = torch.cat([torch.zeros_like(v[:, :1]), v[:, :-1]], 1)
        return before * g.conj(), v, None


def _in_sequence(a: Tensor, b: Tensor, h: Tensor) -> Tensor:
    states = torch.empty_like(b)
    for a_t, b_t, h_t in zip(a.unbind(1), b.unbind(1), states.unbind(1), strict=True):
        h = torch.addcmul(b_t, a_t, h, out=h_t)
    return states


def _in_sequence_back(a: Tensor, dy: Tensor) -> Tensor:
    states = torch.empty_like(dy)
    (*dy_L, last), (*g_L, g), (_, *a_L) = (part.unbind(1) for part in (dy, states, a))
    g.copy_(last)
    for a_t, dy_t, g_t in zip(reversed(a_L), reversed(dy_L), reversed(g_L), strict=True):
        g = torch.addcmul(dy_t, a_t, g, out=g_t)
    return states


def _in_pairs(a: Tensor, b: Tensor, h: Tensor) -> Tensor:
    first = torch.addcmul(b[:, :1], a[:, :1], h[:, None])
    return _pairs(a, torch.cat([first, b[:, 1:]], 1))


def _in_pairs_back(a: Tensor, dy: Tensor) -> Tensor:
    later = torch.cat([a[:, 1:], a[:, :1]], 1)  # the first of all, flipped, is never read
    return _pairs(later.flip(1), dy.flip(1)).flip(1)


def _pairs(a: Tensor, b: Tensor) -> Tensor:
    """Scan from zero: pairs of steps, the states after these, and the states between."""
    length = b.shape[1]
    if length == 1:
        return b.clone()
    even_a, even_b = a[:, : length - 1 : 2], b[:, : length - 1 : 2]
    odd_a, odd_b = a[:, 1::2], b[:, 1::2]
    odd = _pairs(odd_a * even_a, torch.addcmul(odd_b, odd_a, even_b))
    states = torch.empty_like(b)
    states[:, 0], states[:, 1::2] = b[:, 0], odd
    states[:, 2::2] = torch.addcmul(b[:, 2::2], a[:, 2::2], odd[:, : (length - 1) // 2])
    return states


_SEQUENCE = _Way(_in_sequence, _in_sequence_back)
_PAIRS = _Way(_in_pairs, _in_pairs_back)
