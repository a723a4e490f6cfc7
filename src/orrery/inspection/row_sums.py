"""The rows of a pattern sum to one, less what a sink takes; the row of a token that sees nothing is zero."""

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.inspection.checks import Check
from orrery.inspection.recorded import Recorded
from orrery.models.model import Model
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.stack import Stack


def check_rows(model: Model, values: Recorded, *attentions: str) -> Check:
    """Compare the sums of the rows of patterns with what they have to be, for the worst of some attentions.

    Where all are one, nothing but the patterns is asked for. Else the scores say which queries see nothing, and what
    share goes to a sink: the others keep ``sigmoid(logsumexp(scores) - sink)``.

    Args:
        model: which ran.
        values: of the run, with ``pattern`` and ``scores`` of each attention; one inside a recurrence has no scores.
        attentions: the keys of the attentions: ``blocks.3.attention``.
    """
    worst, dtype = 0.0, torch.float64
    for path in attentions:
        pattern_BHLS = values[f"{path}.pattern"]
        dtype = pattern_BHLS.dtype
        worst = max(worst, _off(model, values, path, pattern_BHLS, _limit(dtype)))
    return check_sums(worst, dtype)


def check_sums(off: float, dtype: torch.dtype) -> Check:
    """Return the verdict on how far sums of rows are from what they have to be."""
    return Check("each row sums to one", off, _limit(dtype))


def _limit(dtype: torch.dtype) -> float:
    return 1e-5 if torch.finfo(dtype).bits > 16 else 2e-2


def _off(model: Model, values: Recorded, path: str, pattern_BHLS: Tensor, limit: float) -> float:
    sum_BHL = pattern_BHLS.double().sum(-1)
    off = float((sum_BHL - 1).abs().max())
    if off <= limit or f"{path}.scores" not in values:
        return off
    scores_BHLS, sinks_H = values[f"{path}.scores"].double(), _sinks(model, path)
    if sinks_H is None:
        expected_BHL = (~scores_BHLS.isneginf().all(-1)).double()
    else:
        expected_BHL = torch.sigmoid(scores_BHLS.logsumexp(-1) - sinks_H.detach().double()[:, None])
    return float((sum_BHL - expected_BHL).abs().max())


def _sinks(model: Model, path: str) -> Float[Tensor, "H"] | None:
    """Return the sinks of the attention that shows its tensors under a path."""
    for stack in (module for module in model.modules() if isinstance(module, Stack)):
        for depth, number in enumerate(stack.order):
            for module in stack.blocks[number].modules():
                if isinstance(module, MultiHeadAttention) and f"{stack.path}blocks.{depth}.{module.role}" == path:
                    sinks_H: Tensor | None = module.sinks()
                    return sinks_H
    return None
