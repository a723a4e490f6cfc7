"""Next-token prediction: cross entropy with label smoothing, computed without ever holding all logits."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from orrery.objectives.protocols import Batch, Term

IGNORED = -100
TERM = "next_token"
# Logits held at once: 4 million numbers, 16 MB in float32. Larger gains no speed, smaller pays per piece.
LOGITS_AT_ONCE = 2**22


class CausalLanguageModel:
    """``-log p(target)`` in nats, summed over the targets that are not -100: each next token from those before it.

    With label smoothing ``e`` the target distribution is ``q(v) = (1 - e) [v = target] + e / V`` and a token
    costs ``-sum_v q(v) log p(v)``. Szegedy et al. 2016, section 7; Vaswani et al. 2017, section 5.4 (``e =
    0.1``). A batch has what the model reads, and ``targets`` [B L].

    Differs from Vaswani et al.'s code, which shares ``e`` among the other ``V - 1`` tokens.
    """

    def __init__(self, label_smoothing: float = 0.0) -> None:
        self.label_smoothing = label_smoothing

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        """Return the batch as it is: nothing is drawn."""
        return batch

    def counts(self, batch: Batch) -> dict[str, int]:
        """Count the targets that are not ignored."""
        return {TERM: int((batch["targets"] != IGNORED).sum())}

    def loss(self, model: Any, batch: Batch) -> dict[str, Term]:
        """Return the summed cross entropy of the main head, and the number of targets."""
        targets_BL = batch["targets"]

        def summed(head: nn.Module, x_BLD: Tensor, real_BL: Tensor | None) -> Tensor:
            return head_cross_entropy(head, x_BLD.flatten(0, 1), targets_BL.flatten(), self.label_smoothing)

        # Inside the call, so that what wraps the model (sharding, compilation) has the head's weights at hand.
        (total,) = model(batch, {model.spec.head_names[0]: summed}).values()
        return {TERM: Term(total, (targets_BL != IGNORED).sum())}


def head_cross_entropy(
    head: nn.Module, x_ND: Float[Tensor, "N D"], targets_N: Int[Tensor, "N"], label_smoothing: float = 0.0
) -> Float[Tensor, ""]:
    """Return ``cross_entropy(head(x), targets)`` summed, in pieces of at most 4 million logits.

    Gradients are taken piece by piece in the forward pass, so the logits are computed once and never stored;
    the result has a first derivative only. The arithmetic of the loss is at least float32.
    """
    parameters = [parameter for parameter in head.parameters() if parameter.requires_grad]
    total: Tensor = HeadCrossEntropy.apply(head, label_smoothing, x_ND, targets_N, *parameters)
    return total


def summed_cross_entropy(logits_NV: Tensor, targets_N: Tensor, label_smoothing: float) -> Tensor:
    """Return the summed cross entropy in float32 or, for float64 logits, in float64."""
    wide_NV = logits_NV if logits_NV.dtype == torch.float64 else logits_NV.float()
    return F.cross_entropy(wide_NV, targets_N, reduction="sum", ignore_index=IGNORED, label_smoothing=label_smoothing)


class HeadCrossEntropy(torch.autograd.Function):
    """The head and its loss as one operation whose memory does not grow with rows times vocabulary."""

    @staticmethod
    def forward(
        ctx: Any,
        head: Callable[[Tensor], Tensor],
        smoothing: float,
        x_ND: Tensor,
        targets_N: Tensor,
        *weights: Tensor,
    ) -> Tensor:
        """Sum the loss over pieces; keep the gradient of each piece's rows and the sum of the weights'."""
        wanted = [x_ND.requires_grad, *(weight.requires_grad for weight in weights)]
        rows_at_once = max(1, LOGITS_AT_ONCE // vocabulary_size(head, x_ND))
        total, gradients_x = None, []
        gradients: list[Tensor | None] = [None] * len(weights)
        for x_piece, targets in zip(x_ND.split(rows_at_once), targets_N.split(rows_at_once), strict=True):
            with torch.set_grad_enabled(any(wanted)):
                x = x_piece.detach().requires_grad_(any(wanted))
                loss = summed_cross_entropy(head(x), targets, smoothing)
            total = loss.detach() if total is None else total + loss.detach()
            if any(wanted):
                found = torch.autograd.grad(loss, (x, *weights), allow_unused=True)
                gradients_x.append(found[0])
                gradients = [add(old, new) for old, new in zip(gradients, found[1:], strict=True)]
        ctx.gradients = (torch.cat(gradients_x) if gradients_x else None, *gradients)
        return total if total is not None else x_ND.new_zeros(())

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:
        """Scale the gradients kept by the forward pass."""
        scaled = (None if gradient is None else gradient * upstream for gradient in ctx.gradients)
        x, *weights = scaled
        return None, None, x, None, *weights


def vocabulary_size(head: Callable[[Tensor], Tensor], x_ND: Tensor) -> int:
    """Return how many logits the head gives a row."""
    with torch.no_grad():
        return head(x_ND[:1]).shape[-1]


def add(total: Tensor | None, more: Tensor | None) -> Tensor | None:
    """Add ``more`` to ``total`` in place, where there is something to add."""
    if total is None or more is None:
        return more if total is None else total
    return total.add_(more)
