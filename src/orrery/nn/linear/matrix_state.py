"""A state that is a matrix: outer products of keys and values are added to it, it fades, and queries read it.

``S_t = diag(exp(g_t)) S_{t-1} + k_t v_t^T`` and ``y_t = q_t S_t``, in each head by itself. The log decay ``g_t <= 0``
is one number a head (RetNet, Mamba-2) or one for each channel of the keys (GLA). ``step`` is the definition;
``parallel`` and ``chunked`` give the same numbers over whole rows. All take the state before the first token,
``[B, H, C, E]``, and return the one after the last. They compute in the state's format, which is float32 at least
(``empty``), under autocast too, and return outputs in the format of the values.

No form takes the exponential of a positive number, so that a decay may be as strong as it likes. A token with ``k = 0``
and ``g = 0`` leaves the state alone: padding is made so by the caller.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from orrery.errors import UsageError

SMALLEST = 4
"""Tokens in the smallest pieces: there each pair of tokens is computed by itself where channels fade differently."""


def empty(x: Float[Tensor, "B *rest"], heads: int, key_width: int, value_width: int) -> Float[Tensor, "B H C E"]:
    """Return an empty state for each row of ``x``, in its format but float32 at least."""
    return x.new_zeros(len(x), heads, key_width, value_width, dtype=torch.promote_types(x.dtype, torch.float32))


def wide(x: Float[Tensor, "*B"]) -> Float[Tensor, "*B"]:
    """Return numbers in float32 at least, as decays and what is divided must be."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


@contextmanager
def full_precision(state: Tensor) -> Iterator[None]:
    """Let no product be narrower than its operands, under autocast too."""
    with torch.autocast(state.device.type, enabled=False):
        yield


def step(
    q_BHC: Float[Tensor, "B H C"],
    k_BHC: Float[Tensor, "B H C"],
    v_BHE: Float[Tensor, "B H E"],
    decay_BHC: Float[Tensor, "B H #C"],
    state_BHCE: Float[Tensor, "B H C E"],
) -> tuple[Float[Tensor, "B H E"], Float[Tensor, "B H C E"]]:
    """Fade the state, write one token a row, and read: the definition."""
    q, k, v, decay = (x.to(state_BHCE.dtype) for x in (q_BHC, k_BHC, v_BHE, decay_BHC))
    with full_precision(state_BHCE):
        state_BHCE = decay.exp()[..., None] * state_BHCE + k[..., :, None] * v[..., None, :]
        return (q[..., None, :] @ state_BHCE)[..., 0, :].to(v_BHE.dtype), state_BHCE


def parallel(
    q_BLHC: Float[Tensor, "B L H C"],
    k_BLHC: Float[Tensor, "B L H C"],
    v_BLHE: Float[Tensor, "B L H E"],
    decay_BLHC: Float[Tensor, "B L H #C"],
    state_BHCE: Float[Tensor, "B H C E"],
) -> tuple[Float[Tensor, "B L H E"], Float[Tensor, "B H C E"]]:
    """Weigh every value by ``q_t diag(exp(g_{s+1} + ... + g_t)) k_s``, as attention without a softmax.

    Memory and time grow with the square of the length, by channel with C times that.
    """
    q, k, v, decay = (x.to(state_BHCE.dtype).transpose(1, 2) for x in (q_BLHC, k_BLHC, v_BLHE, decay_BLHC))
    with full_precision(state_BHCE):
        total_BHLC = running(decay)
        scores_BHLS = torch.einsum(
            "bhlc,bhsc,bhlsc->bhls", q, k, _faded(total_BHLC, state_BHCE.dtype).expand(*q.shape[:3], *k.shape[2:])
        )
        y_BHLE = scores_BHLS @ v + (q * total_BHLC.to(q.dtype).exp()) @ state_BHCE
        return y_BHLE.transpose(1, 2).to(v_BLHE.dtype), _after(k, v, total_BHLC, state_BHCE)


def chunked(
    q_BLHC: Float[Tensor, "B L H C"],
    k_BLHC: Float[Tensor, "B L H C"],
    v_BLHE: Float[Tensor, "B L H E"],
    decay_BLHC: Float[Tensor, "B L H #C"],
    state_BHCE: Float[Tensor, "B H C E"],
    size: int,
) -> tuple[Float[Tensor, "B L H E"], Float[Tensor, "B H C E"]]:
    """Multiply inside pieces of ``size`` tokens, all at once, and carry the state from each piece to the next.

    Time grows with the length alone. The loop over pieces holds one operation.

    Raises:
        UsageError: the size is not a power of two.
    """
    tokens, size = q_BLHC.shape[1], piece_size(q_BLHC.shape[1], size)
    with full_precision(state_BHCE):
        given = (q_BLHC, k_BLHC, v_BLHE, decay_BLHC)
        q, k, v, decay = (pieces(x.to(state_BHCE.dtype), size) for x in given)
        total_BHNTC = running(decay)
        inside = _inside if decay.shape[-1] < k.shape[-1] else _inside_by_channel
        y_BHNTE = inside(q, k, v, total_BHNTC)
        last_BHN1C = total_BHNTC[..., -1:, :]
        written_BHNCE = (k * (last_BHN1C - total_BHNTC).to(k.dtype).exp()).mT @ v
        befores_BHNCE, after_BHCE = carry(written_BHNCE, last_BHN1C.to(k.dtype).exp().mT, state_BHCE)
        y_BHNTE = y_BHNTE + (q * total_BHNTC.to(q.dtype).exp()) @ befores_BHNCE
    return joined(y_BHNTE, tokens).to(v_BLHE.dtype), after_BHCE


def piece_size(tokens: int, size: int) -> int:
    """Return the size of pieces for so many tokens: a power of two, no larger than needed.

    Raises:
        UsageError: the size that is asked for is not a power of two.
    """
    if size < 1 or size & (size - 1):
        raise UsageError(f"pieces of {size} tokens cannot be halved again and again", "choose a power of two, as 64")
    return min(size, 1 << max(tokens - 1, 0).bit_length())


def pieces(x_BLHC: Float[Tensor, "B L H C"], size: int) -> Float[Tensor, "B H N T C"]:
    """Return the rows in pieces of ``size`` tokens, the last filled up with zeros."""
    filled = F.pad(x_BLHC, (0, 0, 0, 0, 0, -x_BLHC.shape[1] % size))
    return filled.unflatten(1, (-1, size)).permute(0, 3, 1, 2, 4).contiguous()


def joined(y_BHNTE: Float[Tensor, "B H N T E"], tokens: int) -> Float[Tensor, "B L H E"]:
    """Return the first tokens of all pieces together: what ``pieces`` took apart."""
    return y_BHNTE.flatten(2, 3).transpose(1, 2)[:, :tokens]


def running(decay_TC: Float[Tensor, "*B T C"]) -> Float[Tensor, "*B T C"]:
    """Return the sums of log decays up to each token, in float64.

    What fades between two tokens is the difference of two sums. In float32 both would be rounded as far as decays long
    past have brought them, and a difference near zero would be lost.
    """
    return decay_TC.double().cumsum(-2)


def _faded(total_TC: Float[Tensor, "*B T C"], dtype: torch.dtype) -> Float[Tensor, "*B T S C"]:
    """Return what is left at each token of what an earlier one wrote: nothing of what is yet to come."""
    between_TSC = (total_TC[..., :, None, :] - total_TC[..., None, :, :]).to(dtype)
    return between_TSC.masked_fill(later(total_TC)[..., None], -torch.inf).exp()


def later(total_TC: Float[Tensor, "*B T C"]) -> Bool[Tensor, "T S"]:
    """Return which tokens come after which."""
    tokens = total_TC.shape[-2]
    return torch.ones(tokens, tokens, dtype=torch.bool, device=total_TC.device).triu(1)


def faded(
    total_T1: Float[Tensor, "*B T 1"], dtype: torch.dtype
) -> tuple[Float[Tensor, "*B T S"], Float[Tensor, "*B T 1"], Float[Tensor, "*B S 1"]]:
    """Return, for one decay a head, what is left at each token of each earlier one, as ``pattern * a_t * b_s``.

    The pattern is made of rounded sums and counts as constant; the factors, near one, hold what rounding took. They
    carry all of the gradient, exactly: no gradient of a matrix of pairs is needed.
    """
    rounded_T1 = total_T1.detach().to(dtype)
    rest_T1 = (total_T1 - rounded_T1).to(dtype)
    pattern_TS = (rounded_T1 - rounded_T1.mT).masked_fill(later(total_T1), -torch.inf).exp()
    return pattern_TS, rest_T1.exp(), (-rest_T1).exp()


def _inside(q_TC: Tensor, k_TC: Tensor, v_TE: Tensor, total_T1: Tensor) -> Tensor:
    """Return what each piece says of itself, where all channels of a head fade alike."""
    pattern_TS, a_T1, b_T1 = faded(total_T1, q_TC.dtype)
    return (((q_TC * a_T1) @ (k_TC * b_T1).mT) * pattern_TS) @ v_TE


def _inside_by_channel(q_TC: Tensor, k_TC: Tensor, v_TE: Tensor, total_TC: Tensor) -> Tensor:
    """Return what each piece says of itself, where every channel fades by itself.

    Two halves meet at the end of the first: ``exp(g_{s+1} + ... + g_t)`` is what its key has lost until there, times
    what is lost from there to the query. So a product of matrices does it, of exponents that are never positive; the
    halves are then halved themselves. The smallest pieces compute each pair.
    """
    tokens = q_TC.shape[-2]
    size = min(SMALLEST, tokens)
    q, k, v, total = (x.unflatten(-2, (-1, size)) for x in (q_TC, k_TC, v_TE, total_TC))
    y = torch.einsum("...tc,...sc,...tsc->...ts", q, k, _faded(total, q.dtype)) @ v
    while size < tokens:
        q, k, v, total, y = (x.unflatten(-3, (-1, 2)) for x in (q, k, v, total, y))
        middle = total[..., 0, -1:, :]
        queries = q[..., 1, :, :] * (total[..., 1, :, :] - middle).to(q.dtype).exp()
        kept = k[..., 0, :, :] * (middle - total[..., 0, :, :]).to(k.dtype).exp()
        second = y[..., 1, :, :] + (queries @ kept.mT) @ v[..., 0, :, :]
        y = torch.stack([y[..., 0, :, :], second], -3)
        q, k, v, total, y = (x.flatten(-3, -2) for x in (q, k, v, total, y))
        size *= 2
    return y.flatten(-3, -2)


def _after(k: Tensor, v: Tensor, total_BHLC: Tensor, state_BHCE: Tensor) -> Tensor:
    """Return the state after the last of all tokens."""
    last_BH1C = total_BHLC[..., -1:, :]
    left_BHLC = (last_BH1C - total_BHLC).to(k.dtype).exp()
    return last_BH1C.to(k.dtype).exp().mT * state_BHCE + (k * left_BHLC).mT @ v


def carry(
    written_BHNCE: Float[Tensor, "B H N C E"],
    left_BHNC1: Float[Tensor, "B H N #C 1"],
    state_BHCE: Float[Tensor, "B H C E"],
) -> tuple[Float[Tensor, "B H N C E"], Float[Tensor, "B H C E"]]:
    """Return the state before each piece, and after the last: each leaves a part of the old and adds its own."""
    befores = []
    for written_BHCE, left_BHC1 in zip(written_BHNCE.unbind(2), left_BHNC1.unbind(2), strict=True):
        befores.append(state_BHCE)
        state_BHCE = torch.addcmul(written_BHCE, left_BHC1, state_BHCE)
    return torch.stack(befores, 2), state_BHCE
