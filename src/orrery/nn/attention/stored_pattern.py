"""A kernel for training on processors: the pattern is kept, so that the backward pass is five plain products."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.nn.attention.kernels import sdpa
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.masks import BoundMask

QUERIES = 128
"""How many queries of whole causal rows are computed at once; later keys, which none of them sees, are left out."""
Piece = tuple[int, int, int]
"""Queries from a place to another, and how many keys they see at most."""


def stored_pattern(q_BHLC: Float[Tensor, "B H L C"], kv: KeysValues, operands: Operands) -> Float[Tensor, "B H L E"]:
    """Compute attention as eager does, with the mask folded into the first product and a backward of its own.

    torch's fused kernel recomputes the pattern in its backward; on a processor that costs several times what reading
    it back costs, as long as the pattern fits: it takes ``B H L S`` numbers a layer, and little more than half of them
    where whole rows are causal.

    Raises:
        UsageError: dropout on the pattern, a bias that needs a gradient, a cap or sinks, which this kernel lacks.
    """
    mask, bias_BHLS = operands.mask, operands.bias_BHLS
    if operands.cap is not None or operands.sinks_H is not None:
        raise UsageError("the stored_pattern kernel has neither caps nor sinks", "use the eager kernel")
    if bias_BHLS is not None and bias_BHLS.requires_grad:
        raise UsageError("the stored_pattern kernel has no gradient for a bias", "use the sdpa or the eager kernel")
    if operands.dropout:
        raise UsageError("the stored_pattern kernel has no dropout on the pattern", "use the sdpa or the eager kernel")
    q_BHLC, k_BKSC, v_BKSC = _of_one_dtype(q_BHLC, kv.k_BKSC, kv.v_BKSE)
    heads, shared = q_BHLC.shape[1], q_BHLC.shape[1] // k_BKSC.shape[1]
    if shared > 1:
        k_BKSC, v_BKSC = (x.repeat_interleave(shared, dim=1) for x in (k_BKSC, v_BKSC))
    added, pieces = _added(mask, bias_BHLS, q_BHLC, k_BKSC.shape[2]), _pieces(mask, bias_BHLS, q_BHLC, k_BKSC)
    mixed_NLC = _Attend.apply(*(x.flatten(0, 1) for x in (q_BHLC, k_BKSC, v_BKSC)), added, operands.scale, pieces)
    mixed_BHLC = mixed_NLC.unflatten(0, (-1, heads))
    if mask.dense is None:
        return mixed_BHLC
    return mixed_BHLC.masked_fill(~mask.dense.any(-1, keepdim=True), 0.0)


def stored_where_faster(
    q_BHLC: Float[Tensor, "B H L C"], kv: KeysValues, operands: Operands
) -> Float[Tensor, "B H L E"]:
    """Compute attention by the stored pattern under autocast and for whole causal rows, else by torch's kernel."""
    whole = operands.mask.is_causal and operands.bias_BHLS is None
    kernel = stored_pattern if whole or torch.is_autocast_enabled(q_BHLC.device.type) else sdpa
    return kernel(q_BHLC, kv, operands)


class _Attend(torch.autograd.Function):
    """``P = softmax(scale q k^T + added)``, ``P v``; backward from P: ``dS = P * (dP - rowsum(dP * P))``.

    Each piece of the queries is computed by itself; the last one sees all keys.
    """

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, added: Tensor, scale: float, pieces: Sequence[Piece]
    ) -> Tensor:
        with torch.autocast(q.device.type, enabled=False):  # its softmax would widen the pattern to float32
            patterns, mixed = [], []
            for a, b, keys in pieces:
                scores = torch.baddbmm(added[..., a:b, :keys], q[:, a:b], k[:, :keys].mT, alpha=scale)
                patterns.append(scores.softmax(-1))
                mixed.append(torch.bmm(patterns[-1], v[:, :keys]))
        ctx.save_for_backward(q, k, v, *patterns)
        ctx.scale, ctx.pieces = scale, pieces
        return _joined(mixed)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, *patterns = ctx.saved_tensors
        d_mixed, d_queries = gradients[0].contiguous(), []
        d_k = d_v = None
        for pattern, (a, b, keys) in zip(reversed(patterns), reversed(ctx.pieces), strict=True):
            d_pattern = torch.bmm(d_mixed[:, a:b], v[:, :keys].mT)
            d_scores = torch._softmax_backward_data(d_pattern, pattern, -1, pattern.dtype)
            d_queries.append(torch.bmm(d_scores, k[:, :keys]))
            d_k, d_v = _plus(d_k, d_scores.mT, q[:, a:b]), _plus(d_v, pattern.mT, d_mixed[:, a:b])
        assert d_k is not None
        return _joined(d_queries[::-1]).mul_(ctx.scale), d_k.mul_(ctx.scale), d_v, None, None, None


def _plus(total: Tensor | None, left: Tensor, right: Tensor) -> Tensor:
    """Add a product to the first rows of a sum in place; the first product, which has all rows, is the sum."""
    if total is None:
        return torch.bmm(left, right)
    total[:, : left.shape[1]].baddbmm_(left, right)
    return total


def _joined(pieces: list[Tensor]) -> Tensor:
    return pieces[0] if len(pieces) == 1 else torch.cat(pieces, 1)


def _pieces(mask: BoundMask, bias_BHLS: Tensor | None, q_BHLC: Tensor, k_BHSC: Tensor) -> Sequence[Piece]:
    """Return the pieces in which queries are computed: several where later keys are seen by none of them."""
    length, keys = q_BHLC.shape[2], k_BHSC.shape[2]
    if not mask.is_causal or bias_BHLS is not None or length != keys:
        return [(0, length, keys)]
    starts = range(0, max(length, 1), QUERIES)
    return [(a, min(a + QUERIES, length), min(a + QUERIES, length)) for a in starts]


def _of_one_dtype(*operands: Tensor) -> tuple[Tensor, ...]:
    """Return what is multiplied in autocast's dtype: it casts torch's products, but not a function of one's own.

    Under autocast a norm or a rotation leaves q and k in float32 while v is bfloat16.
    """
    device = operands[0].device.type
    if not torch.is_autocast_enabled(device):
        return operands
    return tuple(x.to(torch.get_autocast_dtype(device)) for x in operands)


def _added(mask: BoundMask, bias_BHLS: Tensor | None, q_BHLC: Tensor, keys: int) -> Tensor:
    """Return what is added to the scores: the lowest finite number where the mask forbids, so no row is NaN."""
    B, H, L, _ = q_BHLC.shape
    if mask.is_causal and bias_BHLS is None:
        return _causal(L, keys, q_BHLC.dtype, q_BHLC.device)
    allowed = mask.matrix(L, keys, q_BHLC.device)
    base = q_BHLC.new_zeros(()) if bias_BHLS is None else bias_BHLS.to(q_BHLC.dtype)
    return base.masked_fill(~allowed, torch.finfo(q_BHLC.dtype).min).expand(B, H, L, keys).flatten(0, 1)


@lru_cache(maxsize=8)
def _causal(queries: int, keys: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.full((queries, keys), float("-inf"), dtype=dtype, device=device).triu(1)
