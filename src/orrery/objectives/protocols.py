"""What the training loop knows of an objective: terms of a loss, each a sum over a count."""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from orrery.models.inputs import Batch


@dataclass(frozen=True)
class Term:
    """One term of a loss over some examples: ``weight * sum / count``, the count taken over the global batch.

    ``sum`` is a scalar with a gradient, in nats where the term is a likelihood; ``count`` the number of things
    summed (tokens, pairs). ``coupled`` says that the term ties examples together, so that a batch must not be split.
    """

    sum: Tensor
    count: Tensor | int
    weight: float = 1.0
    coupled: bool = False


@runtime_checkable
class Objective(Protocol):
    """A way to learn: it turns examples into a batch of tensors, and a model's outputs into terms."""

    def prepare(self, batch: Batch, rng: torch.Generator) -> Batch:
        """Draw everything random (masks, corruptions, negatives) from ``rng`` and return the finished batch."""
        ...

    def counts(self, batch: Batch) -> dict[str, int]:
        """Count what each term will sum, before any forward pass, so that micro-batches share one denominator."""
        ...

    def loss(self, model: Any, batch: Batch) -> dict[str, Term]:
        """Return the terms of the loss of ``model`` on a prepared batch."""
        ...


@runtime_checkable
class BatchSource(Protocol):
    """Where batches come from: a pure function of the step, or a source whose state the checkpoint saves."""

    def batch(self, step: int) -> Batch:
        """Return the global batch of ``step`` (from 0): every rank and every resume sees the same."""
        ...

    def state(self) -> dict[str, Any]:
        """Return what must be saved to continue; empty for a pure function of the step."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what ``state`` returned."""
        ...
