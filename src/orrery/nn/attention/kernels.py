"""Kernels: from queries, keys and values to mixed values. ``eager`` is the definition; every other must equal it."""

from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError
from orrery.nn.attention.operands import KeysValues, Operands


@runtime_checkable
class Kernel(Protocol):
    """Attention over given queries, keys and values; no parameters."""

    def __call__(
        self, q_BHLC: Float[Tensor, "B H L C"], kv: KeysValues, operands: Operands
    ) -> Float[Tensor, "B H L E"]:
        """Return ``softmax(cap(scale * q k^T) + bias + mask) v``."""
        ...


def eager(q_BHLC: Float[Tensor, "B H L C"], kv: KeysValues, operands: Operands) -> Float[Tensor, "B H L E"]:
    """Scaled dot-product attention, ``softmax(Q K^T / sqrt(C)) V`` (Vaswani et al. 2017, section 3.2.1).

    ``cap`` bounds the scores by ``cap * tanh(scores / cap)`` (Gemma 2); a sink is a score that every query gives to
    nothing, so that a pattern may sum to less than one (gpt-oss).

    Differs from the paper: a query that may see nothing gets zeros, where the formula is undefined (0/0), and a
    key-value head may serve several query heads (Ainslie et al. 2023).
    """
    k_BHSC, v_BHSE = (x.repeat_interleave(q_BHLC.shape[1] // x.shape[1], dim=1) for x in (kv.k_BKSC, kv.v_BKSE))
    allowed_BHLS = operands.mask.matrix(q_BHLC.shape[2], k_BHSC.shape[2], q_BHLC.device)
    scores_BHLS = operands.scale * (q_BHLC @ k_BHSC.mT)
    if operands.cap is not None:
        scores_BHLS = operands.cap * torch.tanh(scores_BHLS / operands.cap)
    if operands.bias_BHLS is not None:
        scores_BHLS = scores_BHLS + operands.bias_BHLS
    scores_BHLS = operands.tap("scores", scores_BHLS.masked_fill(~allowed_BHLS, float("-inf")))
    if operands.sinks_H is None:
        pattern_BHLS = scores_BHLS.softmax(dim=-1)
    else:
        sink_BHL1 = operands.sinks_H[:, None, None].expand(*scores_BHLS.shape[:3], 1)
        pattern_BHLS = torch.cat([scores_BHLS, sink_BHL1], dim=-1).softmax(dim=-1)[..., :-1]
    pattern_BHLS = operands.tap("pattern", pattern_BHLS.masked_fill(~allowed_BHLS.any(-1, keepdim=True), 0.0))
    return F.dropout(pattern_BHLS, operands.dropout) @ v_BHSE


def sdpa(q_BHLC: Float[Tensor, "B H L C"], kv: KeysValues, operands: Operands) -> Float[Tensor, "B H L E"]:
    """Compute the same through torch's fused kernel, which never holds the scores; so it offers no taps.

    A sink becomes one more key, whose score is the sink and whose value is zero.

    Raises:
        UsageError: a cap on the scores, which the fused kernel does not have.
    """
    if operands.cap is not None:
        raise UsageError("the sdpa kernel cannot cap the scores", "use the eager kernel")
    k_BKSC, v_BKSE, mask, sinks_H = kv.k_BKSC, kv.v_BKSE, operands.mask, operands.sinks_H
    dense = mask.dense
    if operands.bias_BHLS is not None or sinks_H is not None:
        base = q_BHLC.new_zeros(1, 1, 1, 1) if operands.bias_BHLS is None else operands.bias_BHLS
        allowed = mask.matrix(q_BHLC.shape[2], k_BKSC.shape[2], q_BHLC.device)
        dense = base.masked_fill(~allowed, float("-inf"))
    if sinks_H is not None:
        k_BKSC, v_BKSE = (F.pad(x, (0, 0, 0, 1)) for x in (k_BKSC, v_BKSE))
        assert dense is not None
        shape = (dense.shape[0], q_BHLC.shape[1], q_BHLC.shape[2])
        sink = sinks_H[:, None, None].expand(*shape, 1)
        dense = torch.cat([dense.expand(*shape, -1), sink.to(dense.dtype)], dim=-1)
    return F.scaled_dot_product_attention(
        q_BHLC,
        k_BKSC,
        v_BKSE,
        attn_mask=dense,
        is_causal=dense is None and mask.is_causal,
        scale=operands.scale,
        dropout_p=operands.dropout,
        enable_gqa=q_BHLC.shape[1] != k_BKSC.shape[1],
    )


KERNELS: dict[str, Kernel] = {"eager": eager, "sdpa": sdpa}
