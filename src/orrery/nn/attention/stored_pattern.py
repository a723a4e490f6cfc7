"""A kernel for training on processors: the pattern is kept, so that the backward pass is five plain products."""

from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.nn.attention.kernels import sdpa
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.masks import BoundMask


def stored_pattern(q_BHLC: Float[Tensor, "B H L C"], kv: KeysValues, operands: Operands) -> Float[Tensor, "B H L E"]:
    """Compute attention as eager does, with the mask folded into the first product and a backward of its own.

    torch's fused kernel recomputes the pattern in its backward; on a processor that costs several times what reading
    it back costs, as long as the pattern fits: it takes ``B H L S`` numbers a layer.

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
    added = _added(mask, bias_BHLS, q_BHLC, k_BKSC.shape[2])
    mixed_NLC = _Attend.apply(*(x.flatten(0, 1) for x in (q_BHLC, k_BKSC, v_BKSC)), added, operands.scale)
    mixed_BHLC = mixed_NLC.unflatten(0, (-1, heads))
    if mask.dense is None:
        return mixed_BHLC
    return mixed_BHLC.masked_fill(~mask.dense.any(-1, keepdim=True), 0.0)


def stored_if_narrow(q_BHLC: Float[Tensor, "B H L C"], kv: KeysValues, operands: Operands) -> Float[Tensor, "B H L E"]:
    """Compute attention by the stored pattern under autocast, and by torch's fused kernel in float32."""
    kernel = stored_pattern if torch.is_autocast_enabled(q_BHLC.device.type) else sdpa
    return kernel(q_BHLC, kv, operands)


class _Attend(torch.autograd.Function):
    """``P = softmax(scale q k^T + added)``, ``P v``; backward from P: ``dS = P * (dP - rowsum(dP * P))``."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, k: Tensor, v: Tensor, added: Tensor, scale: float) -> Tensor:
        with torch.autocast(q.device.type, enabled=False):  # its softmax would widen the pattern to float32
            pattern = torch.baddbmm(added, q, k.mT, alpha=scale).softmax(-1)
            ctx.save_for_backward(q, k, v, pattern)
            ctx.scale = scale
            return torch.bmm(pattern, v)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, pattern = ctx.saved_tensors
        d_mixed = gradients[0].contiguous()
        d_pattern = torch.bmm(d_mixed, v.mT)
        d_scores = torch._softmax_backward_data(d_pattern, pattern, -1, pattern.dtype)
        d_q, d_k = torch.bmm(d_scores, k).mul_(ctx.scale), torch.bmm(d_scores.mT, q).mul_(ctx.scale)
        return d_q, d_k, torch.bmm(pattern.mT, d_mixed), None, None


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
