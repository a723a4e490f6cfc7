"""Sums of exponentials that fade with the distance, kept so that none overflows: the state of RWKV's time mixing.

A sum is three tensors ``(a, b, m)`` and means ``a e^m`` (with the values) and ``b e^m`` (without them); m is about the
largest exponent in it. What is chosen for m changes neither of the two, so no gradient passes through the choice.
"""

from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

Sums: TypeAlias = tuple[Tensor, Tensor, Tensor]
"""``a``, ``b`` and ``m``, of one shape."""

NOTHING = -1e38
"""The exponent of a sum without terms: its power is zero, and no difference of two such exponents is undefined."""
PIECE = 16
"""Tokens of a piece of the chunked form, within which all pairs are weighed."""


def joined(older: Sums, newer: Sums) -> Sums:
    """Return the sum of both."""
    (a, b, m), (c, d, n) = older, newer
    top = torch.maximum(m, n).detach()
    old, new = (m - top).exp(), (n - top).exp()
    return old * a + new * c, old * b + new * d, top


def average(sums: Sums) -> Tensor:
    """Return the weighted average that a sum stands for."""
    return sums[0] / sums[1]


def term(k: Tensor, v: Tensor) -> Sums:
    """Return the sum of one term ``e^k v``."""
    return v, torch.ones_like(k), k


def faded(sums: Sums, log_decay: Tensor) -> Sums:
    """Return the sum whose every term is ``e^log_decay`` of what it was."""
    return sums[0], sums[1], sums[2] + log_decay


def step(k_BC: Tensor, v_BC: Tensor, log_decay_C: Tensor, bonus_C: Tensor, past: Sums) -> tuple[Tensor, Sums]:
    """Return the average over the past and the token itself, whose exponent has a bonus, and the past after it."""
    wkv_BC = average(joined(past, term(k_BC + bonus_C, v_BC)))
    return wkv_BC, joined(faded(past, log_decay_C), term(k_BC, v_BC))


def parallel(
    k_NTC: Float[Tensor, "N T C"],
    v_NTC: Float[Tensor, "N T C"],
    log_decay_NTC: Float[Tensor, "N T C"],
    bonus_C: Float[Tensor, "C"],
    past: Sums,
) -> tuple[Float[Tensor, "N T C"], Sums]:
    """Return the averages of all tokens, and the past after the last; the sums of ever longer stretches are joined.

    After the r-th round each place holds the sum of up to ``2^r`` terms: about log2 T rounds over all tokens.
    """
    own = term(k_NTC, v_NTC)
    sums = _row(_spread(past), own)
    decay_NTC = torch.cat([torch.zeros_like(log_decay_NTC[:, :1]), log_decay_NTC], 1)
    reach = 1
    while reach < decay_NTC.shape[1]:
        older = faded(_of(sums, slice(None, -reach)), decay_NTC[:, reach:])
        sums = _row(_of(sums, slice(reach)), joined(older, _of(sums, slice(reach, None))))
        decay_NTC = torch.cat([decay_NTC[:, :reach], decay_NTC[:, reach:] + decay_NTC[:, :-reach]], 1)
        reach *= 2
    wkv_NTC = average(joined(_of(sums, slice(None, -1)), term(k_NTC + bonus_C, v_NTC)))
    return wkv_NTC, (sums[0][:, -1], sums[1][:, -1], sums[2][:, -1])


def chunked(
    k_NTC: Float[Tensor, "N T C"],
    v_NTC: Float[Tensor, "N T C"],
    log_decay_NTC: Float[Tensor, "N T C"],
    bonus_C: Float[Tensor, "C"],
    past: Sums,
) -> tuple[Float[Tensor, "N T C"], Sums]:
    """Return the same piece by piece: the pairs within each are weighed, all before it is one sum."""
    said = []
    # Not slices: the gradient of each would be as long as the row.
    for k, v, log_decay in zip(*(x_NTC.split(PIECE, 1) for x_NTC in (k_NTC, v_NTC, log_decay_NTC)), strict=True):
        wkv_NTC, past = _piece(k, v, log_decay, bonus_C, past)
        said.append(wkv_NTC)
    return torch.cat(said, 1), past


def _piece(k_NTC: Tensor, v_NTC: Tensor, log_decay_NTC: Tensor, bonus_C: Tensor, past: Sums) -> tuple[Tensor, Sums]:
    through_NTC = log_decay_NTC.cumsum(1)
    before_NTC = through_NTC - log_decay_NTC
    places_T = torch.arange(k_NTC.shape[1], device=k_NTC.device)
    earlier_TT = (places_T[:, None] > places_T)[..., None]
    own_TT = (places_T[:, None] == places_T)[..., None]
    weight_NTTC = before_NTC[:, :, None] + (k_NTC - through_NTC)[:, None]
    weight_NTTC = torch.where(own_TT, (k_NTC + bonus_C)[:, None], weight_NTTC)
    weight_NTTC = torch.where(earlier_TT | own_TT, weight_NTTC, NOTHING)
    wkv_NTC = average(joined(faded(_spread(past), before_NTC), _summed(weight_NTTC, v_NTC[:, None], 2)))
    last_NC = through_NTC[:, -1]
    inside = _summed(k_NTC + last_NC[:, None] - through_NTC, v_NTC, 1)
    return wkv_NTC, joined(faded(past, last_NC), inside)


def _summed(weight: Tensor, v: Tensor, axis: int) -> Sums:
    """Return the sum of ``e^weight v`` over one axis."""
    top = weight.amax(axis, keepdim=True).detach()
    power = (weight - top).exp()
    return (power * v).sum(axis), power.sum(axis), top.squeeze(axis)


def _of(sums: Sums, places: slice) -> Sums:
    return sums[0][:, places], sums[1][:, places], sums[2][:, places]


def _row(first: Sums, rest: Sums) -> Sums:
    """Return the sums of the first places and of those behind them."""
    a, b, m = (torch.cat(parts, 1) for parts in zip(first, rest, strict=True))
    return a, b, m


def _spread(sums: Sums) -> Sums:
    return sums[0][:, None], sums[1][:, None], sums[2][:, None]
