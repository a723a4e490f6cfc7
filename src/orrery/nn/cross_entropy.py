"""Cross entropy with label smoothing, computed from the final stream without ever holding all logits."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

IGNORED = -100
"""The target of a row that is not counted."""
LOGITS_AT_ONCE = 2**22
"""Logits held at once: 4 million numbers, 16 MB in float32. Larger gains no speed on a CPU, smaller pays per piece."""
LOGITS_AT_ONCE_ON_A_GPU = 2**26
"""256 MB in float32. Each piece adds its gradient to that of the whole table: GPT-2 124M on 16 rows of 1,024 tokens
spent more than half of a step on that in 197 pieces of 4 million."""


def head_cross_entropy(
    head: nn.Module,
    x_ND: Float[Tensor, "N D"],
    targets_N: Int[Tensor, "N"],
    label_smoothing: float = 0.0,
    most: int | None = None,
) -> Float[Tensor, ""]:
    """Return ``cross_entropy(head(x), targets)`` summed, in pieces of ``most`` logits, by default some million.

    Gradients are taken piece by piece in the forward pass, so the logits are computed once and never stored;
    the result has a first derivative only. The arithmetic of the loss is at least float32.
    """
    parameters = [parameter for parameter in head.parameters() if parameter.requires_grad]
    total: Tensor = HeadCrossEntropy.apply(head, label_smoothing, most, x_ND, targets_N, *parameters)
    return total


def summed_cross_entropy(
    logits_NV: Tensor, targets_N: Tensor, label_smoothing: float, weights_V: Tensor | None = None
) -> Tensor:
    """Return the summed cross entropy in float32 or, for float64 logits, in float64."""
    wide_NV = logits_NV if logits_NV.dtype == torch.float64 else logits_NV.float()
    weights_V = None if weights_V is None else weights_V.to(wide_NV)
    return F.cross_entropy(
        wide_NV, targets_N, weights_V, reduction="sum", ignore_index=IGNORED, label_smoothing=label_smoothing
    )


def head_log_probabilities(
    head: nn.Module, x_ND: Float[Tensor, "N D"], targets_N: Int[Tensor, "N"]
) -> Float[Tensor, "N"]:
    """Return ``log softmax(head(x_n))[target_n]`` in nats, at least in float32.

    Of many logits only a piece is held at once, which the backward pass computes again.
    """
    pieces = list(in_pieces(head, x_ND, targets_N))
    if len(pieces) == 1:
        return target_log_probabilities(head(x_ND), targets_N)

    def of_piece(x: Tensor, targets: Tensor) -> Tensor:
        return target_log_probabilities(head(x), targets)

    return torch.cat([checkpoint(of_piece, x, targets, use_reentrant=False) for x, targets in pieces])


def target_log_probabilities(logits_NV: Float[Tensor, "N V"], targets_N: Int[Tensor, "N"]) -> Float[Tensor, "N"]:
    """Return the log probability of each target, in float32 or, for float64 logits, in float64."""
    wide_NV = logits_NV if logits_NV.dtype == torch.float64 else logits_NV.float()
    return -F.cross_entropy(wide_NV, targets_N, reduction="none")


class HeadCrossEntropy(torch.autograd.Function):
    """The head and its loss as one operation whose memory does not grow with rows times vocabulary.

    Shapes: rows ``[N, D]`` and targets ``[N]`` to one number, ``sum_n -log softmax(head(x_n))[target_n]``.
    """

    @staticmethod
    def forward(
        ctx: Any,
        head: Callable[[Tensor], Tensor],
        smoothing: float,
        most: int | None,
        x_ND: Tensor,
        targets_N: Tensor,
        *weights: Tensor,
    ) -> Tensor:
        """Sum the loss over pieces; keep the gradient of each piece's rows and the sum of the weights'."""
        wanted = [x_ND.requires_grad, *(weight.requires_grad for weight in weights)]
        total, gradients_x = None, []
        gradients: list[Tensor | None] = [None] * len(weights)
        for x_piece, targets in in_pieces(head, x_ND, targets_N, most):
            with torch.set_grad_enabled(any(wanted)):
                x = x_piece.detach().requires_grad_(any(wanted))
                loss = summed_cross_entropy(head(x), targets, smoothing)
            total = loss.detach() if total is None else total + loss.detach()
            if any(wanted):
                gradients_of_piece = torch.autograd.grad(loss, (x, *weights), allow_unused=True)
                gradients_x.append(gradients_of_piece[0])
                gradients = [add(old, new) for old, new in zip(gradients, gradients_of_piece[1:], strict=True)]
        ctx.gradients = (torch.cat(gradients_x) if gradients_x else None, *gradients)
        return total if total is not None else x_ND.new_zeros(())

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> Any:
        """Scale the gradients kept by the forward pass."""
        scaled = (None if gradient is None else gradient * upstream for gradient in ctx.gradients)
        x, *weights = scaled
        return None, None, None, x, None, *weights


def in_pieces(
    head: Callable[[Tensor], Tensor],
    x_ND: Float[Tensor, "N D"],
    targets_N: Int[Tensor, "N"],
    most: int | None = None,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Return neighbouring rows and their targets, by default of at most 4 million logits, on a GPU of 64 million."""
    usual = LOGITS_AT_ONCE if x_ND.device.type == "cpu" else LOGITS_AT_ONCE_ON_A_GPU
    rows_at_once = max(1, (most or usual) // vocabulary_size(head, x_ND))
    return zip(x_ND.split(rows_at_once), targets_N.split(rows_at_once), strict=True)


def vocabulary_size(head: Callable[[Tensor], Tensor], x_ND: Tensor) -> int:
    """Return how many logits the head gives a row."""
    with torch.no_grad():
        return head(x_ND[:1]).shape[-1]


def add(total: Tensor | None, more: Tensor | None) -> Tensor | None:
    """Add ``more`` to ``total`` in place, where there is something to add."""
    if total is None or more is None:
        return more if total is None else total
    return total.add_(more)
