"""What a batch costs a step of training: operations, and what it keeps in memory between forward and backward."""

from dataclasses import dataclass

import torch
from torch import nn

from orrery.models.inputs import Batch
from orrery.objectives import Objective
from orrery.planning.rehearsal import watched
from orrery.training.loop import Parts
from orrery.training.precision import Precision
from orrery.training.step import rows_of, share, take, to_device

LOOKED_AT = 64
"""Batches among which the largest is sought: those of pairs differ in their lengths."""
FEW, MORE = 2, 4
"""Rows that are computed: bytes grow by the same number with each row."""


@dataclass(frozen=True)
class BatchCost:
    """What a batch costs.

    Attributes:
        kept: bytes of activations that lie in memory when the backward pass begins.
        operations: floating-point operations of the products in the forward and the backward pass.
    """

    kept: float
    operations: float

    def __add__(self, other: "BatchCost") -> "BatchCost":
        """Return the sum."""
        return BatchCost(self.kept + other.kept, self.operations + other.operations)

    def __rmul__(self, times: int | float) -> "BatchCost":
        """Return several times as much."""
        return BatchCost(times * self.kept, times * self.operations)


def largest_batch(parts: Parts) -> Batch:
    """Return the largest of the first batches, as the objective prepares it."""
    batch = max((parts.source.batch(step) for step in range(LOOKED_AT)), key=_size)
    return parts.objective.prepare(batch, torch.Generator().manual_seed(0))


def cost_of_rows(parts: Parts, precision: Precision, batch: Batch, rows: int) -> BatchCost:
    """Return the cost of ``rows`` rows like those of a batch.

    Two and four of its rows go through the model and back; the rest follows, for what a row adds is the same for each.
    Rows of fewer real tokens than the others may add less.
    """
    counted = [min(rows, rows_of(batch), count) for count in (FEW, MORE)]
    model = parts.model.to(precision.device).train()
    with torch.random.fork_rng():
        few, more = (batch_cost(model, parts.objective, take(batch, range(count)), precision) for count in counted)
    each = (1 / max(1, counted[1] - counted[0])) * (more + -1 * few)
    return more + (rows - counted[1]) * each


def batch_cost(model: nn.Module, objective: Objective, batch: Batch, precision: Precision) -> BatchCost:
    """Return what a batch costs, by one step on it; the model is left without gradients."""
    with watched() as noted, noted.part("step"):
        with precision.context():
            terms = objective.loss(model, to_device(batch, precision.device))
            loss = torch.stack([share(term, 1) for term in terms.values()]).sum()
        del terms
        kept = noted.live
        loss.backward()
    model.zero_grad(set_to_none=True)
    return BatchCost(float(kept), float(noted.work["step"].total))


def _size(batch: Batch) -> int:
    return sum(tensor.numel() for tensor in batch.values())
