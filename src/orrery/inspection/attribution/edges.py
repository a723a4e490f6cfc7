"""Attention beside what it does: what each key writes for each query, and what that adds to a logit."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.attribution.sublayers import ATTENTIONS, Attention, is_gated, output_matrices, passing, sublayers
from orrery.inspection.attribution.towards import layer_with, towards
from orrery.inspection.attribution.view import TraceView, needed, wide
from orrery.inspection.checks import Check, bound, error
from orrery.inspection.recorded import RecordedPass

BOUND = 1e-4


@dataclass(frozen=True)
class EdgeShares:
    """What each key adds to a logit through each head.

    Attributes:
        value_BHPS: for every head, query and key, in units of the logit.
        positions: the positions of the queries, counted from the left.
        logit_BP: the whole logit, or the difference of two.
        token_BP: the tokens.
        check: how far the sum over keys is from what the heads add, ``max|a - b| / max(1, max|b|)``.
    """

    value_BHPS: Float[Tensor, "B H P S"]
    positions: Sequence[int]
    logit_BP: Float[Tensor, "B P"]
    token_BP: Int[Tensor, "B P"]
    check: Check


def weighted_pattern(trace: RecordedPass, attention: str) -> Float[Tensor, "B H L S"]:
    """Return ``a_ij |W_out v_j|``: the length of what head h writes at query i because of key j.

    A weight on a short vector does little (Kobayashi et al. 2020). What stands behind the branch is left out; a gate
    of the query on the heads is not: ``a_ij |W_out (g_i * v_j)|``.

    Args:
        trace: which has kept ``pattern``, ``v`` and ``gate`` where there is one.
        attention: ``blocks.3.attention``, ``blocks.3.cross`` or, of an encoder, ``encoder.blocks.3.attention``.

    Raises:
        UsageError: no such attention, one without an output matrix a head, or a value that was not kept.
    """
    module = _attention(trace, attention)
    pattern_BHLS, v_BHSC = _pattern(trace, attention), _values(trace, attention)
    matrix_HCD = output_matrices(module, v_BHSC.shape[1])
    if not is_gated(module):
        return pattern_BHLS * _lengths(v_BHSC, matrix_HCD)[:, :, None]
    gates = wide(needed(trace, f"{attention}.gate")).unbind(2)  # one query after the other: each writes other vectors
    return pattern_BHLS * torch.stack([_lengths(v_BHSC * gate_BHC[:, :, None], matrix_HCD) for gate_BHC in gates], 2)


def _lengths(v_BHSC: Tensor, matrix_HCD: Tensor) -> Tensor:
    """Return how long the vectors are that output matrices make of values."""
    return torch.einsum("bhsc,hcd->bhsd", v_BHSC, matrix_HCD).norm(dim=-1)


def edge_shares(
    trace: RecordedPass,
    attention: str,
    token: int | None = None,
    *,
    against: int | None = None,
    position: int | None = -1,
) -> EdgeShares:
    """Return ``a_ij (W_out v_j) . d_i``: what each edge of an attention adds to a token's logit directly.

    ``d_i`` is the direction of the logit, as in ``attribute_logit``. The sum over keys is what the head adds.

    Args:
        trace: which has kept ``pattern``, ``v``, ``gate`` where there is one, and what ``attribute_logit`` needs.
        attention: ``blocks.3.attention`` or ``blocks.3.cross``, of the stack that answers.
        token: an id; by default the most probable one at each position.
        against: another id, whose logit is subtracted.
        position: of the query, a negative one from the right; ``None`` for all.

    Raises:
        UsageError: as in ``weighted_pattern`` and ``attribute_logit``.
    """
    view, module = TraceView(trace, position), _attention(trace, attention)
    direction = towards(view, attention, token, against)
    v_BHSC, pattern_BHPS = _values(trace, attention), view.take(_pattern(trace, attention), 2)
    # The direction goes through the head's matrix once a query, rather than every value once an edge.
    matrix_HCD = output_matrices(module, v_BHSC.shape[1])
    towards_BHPC = torch.einsum("bpd,hcd->bhpc", direction.direction_BPD, matrix_HCD)
    towards_BHPC = passing(module, attention, view, towards_BHPC)
    value_BHPS = pattern_BHPS * (towards_BHPC @ v_BHSC.mT)
    whole_BHP = (view.heads(f"{attention}.mixed") * towards_BHPC).sum(-1)
    limit = max(BOUND, bound(trace.logits.dtype))
    check = Check("the shares of the edges sum to what the head adds", error(value_BHPS.sum(-1), whole_BHP), limit)
    target = direction.target
    return EdgeShares(value_BHPS, list(view.positions), target.logit_BP, target.token_BP, check)


def _attention(trace: RecordedPass, key: str) -> Attention:
    """Return the module of an attention, of the stack that answers or of the reader."""
    stack = trace.model.stack
    if key.startswith("encoder."):
        stack = getattr(getattr(trace.model, "reader", None), "stack", stack)
    module = layer_with(sublayers(stack), key).leaves[key]
    if not isinstance(module, ATTENTIONS):
        raise UsageError(
            f"{key} is a {type(module).__name__}, which has no output matrix a head", "look at its pattern itself"
        )
    return module


def _pattern(trace: RecordedPass, key: str) -> Tensor:
    return wide(needed(trace, f"{key}.pattern"))


def _values(trace: RecordedPass, key: str) -> Tensor:
    """Return the values, one for every head."""
    v_BKSC = wide(needed(trace, f"{key}.v"))
    heads = needed(trace, f"{key}.pattern").shape[1]
    return v_BKSC.repeat_interleave(heads // v_BKSC.shape[1], dim=1)
