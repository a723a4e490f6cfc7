"""Kernels: from queries, keys and values to mixed values. ``eager`` is the definition; every other must equal it."""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from orrery.nn.masks import BoundMask


@runtime_checkable
class Kernel(Protocol):
    """Attention over given queries, keys and values; no parameters."""

    def __call__(
        self,
        q_BHLC: Float[Tensor, "B H L C"],
        k_BKSC: Float[Tensor, "B K S C"],
        v_BKSC: Float[Tensor, "B K S C"],
        *,
        mask: BoundMask,
        bias_BHLS: Float[Tensor, "B H L S"] | None,
        scale: float,
        dropout: float,
        tap: Callable[[str, Tensor], Tensor],
    ) -> Float[Tensor, "B H L C"]:
        """Return ``softmax(scale * q k^T + bias + mask) v``."""
        ...


def eager(
    q_BHLC: Float[Tensor, "B H L C"],
    k_BKSC: Float[Tensor, "B K S C"],
    v_BKSC: Float[Tensor, "B K S C"],
    *,
    mask: BoundMask,
    bias_BHLS: Float[Tensor, "B H L S"] | None,
    scale: float,
    dropout: float,
    tap: Callable[[str, Tensor], Tensor],
) -> Float[Tensor, "B H L C"]:
    """Scaled dot-product attention, ``softmax(Q K^T / sqrt(C)) V`` (Vaswani et al. 2017, section 3.2.1).

    Differs from the paper: a query that may see nothing gets zeros, where the formula is undefined (0/0), and a
    key-value head may serve several query heads (Ainslie et al. 2023).
    """
    k_BHSC, v_BHSC = (x.repeat_interleave(q_BHLC.shape[1] // x.shape[1], dim=1) for x in (k_BKSC, v_BKSC))
    allowed_BHLS = mask.matrix(q_BHLC.shape[2], k_BHSC.shape[2], q_BHLC.device)
    scores_BHLS = scale * (q_BHLC @ k_BHSC.mT)
    if bias_BHLS is not None:
        scores_BHLS = scores_BHLS + bias_BHLS
    scores_BHLS = tap("scores", scores_BHLS.masked_fill(~allowed_BHLS, float("-inf")))
    pattern_BHLS = scores_BHLS.softmax(dim=-1)
    pattern_BHLS = tap("pattern", pattern_BHLS.masked_fill(~allowed_BHLS.any(-1, keepdim=True), 0.0))
    return F.dropout(pattern_BHLS, dropout) @ v_BHSC


def sdpa(
    q_BHLC: Float[Tensor, "B H L C"],
    k_BKSC: Float[Tensor, "B K S C"],
    v_BKSC: Float[Tensor, "B K S C"],
    *,
    mask: BoundMask,
    bias_BHLS: Float[Tensor, "B H L S"] | None,
    scale: float,
    dropout: float,
    tap: Callable[[str, Tensor], Tensor],
) -> Float[Tensor, "B H L C"]:
    """Compute the same through torch's fused kernel, which never holds the scores; so it offers no taps."""
    dense = mask.dense
    if bias_BHLS is not None:
        allowed = mask.matrix(q_BHLC.shape[2], k_BKSC.shape[2], q_BHLC.device)
        dense = bias_BHLS.masked_fill(~allowed, float("-inf"))
    return F.scaled_dot_product_attention(
        q_BHLC,
        k_BKSC,
        v_BKSC,
        attn_mask=dense,
        is_causal=dense is None and mask.is_causal,
        scale=scale,
        dropout_p=dropout,
        enable_gqa=q_BHLC.shape[1] != k_BKSC.shape[1],
    )


KERNELS: dict[str, Kernel] = {"eager": eager, "sdpa": sdpa}
