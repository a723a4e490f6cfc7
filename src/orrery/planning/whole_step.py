"""A step of training from its batch to the optimizer's last write, rehearsed or real: both run the same lines here."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from orrery.models.model import ModelSpec
from orrery.planning.rehearsal import rehearsed
from orrery.planning.roofline import RooflineOperation, call_of
from orrery.planning.step_cost import cross_entropy, example_batch
from orrery.training.optimizers import KINDS
from orrery.training.precision import Precision

GAPS = 0.5
"""Bytes of gaps in the heap of the C library for each byte that comes and goes in it during a step.

A rule of thumb: of eighteen models measured on Linux it was 0.3 for those that mostly have activations, 0.8 for those
that mostly have weights, 1.3 for an LSTM, and near 2 for a GRU and a Mamba, whose loops are Python's. Tensors that are
mapped apart leave none.
"""


def with_gaps(passing: int | float) -> float:
    """Return the bytes of the heap that such bytes take, with the gaps that they leave."""
    return (1 + GAPS) * passing


RATE = 1e-5
"""Of the optimizer: it does not matter, but is small enough for numbers to stay finite."""


@dataclass(frozen=True)
class WholeStep:
    """What is trained and how.

    Attributes:
        spec: the architecture.
        rows: of the batch.
        length: tokens of each row; of the source and of the target where the model reads one.
        optimizer: a kind of ``training.optimizer``.
        precision: the arithmetic, and how many threads.
    """

    spec: ModelSpec
    rows: int
    length: int
    optimizer: str
    precision: Precision

    def begin(self) -> "ModelInTraining":
        """Return the model with its optimizer."""
        model = self.spec.build().train()
        matrices = [one for one in model.parameters() if one.requires_grad]
        fused: Mapping[str, Any] = {} if self.optimizer == "muon" else {"fused": True}
        return ModelInTraining(self, model, KINDS[self.optimizer](matrices, lr=RATE, **fused))


@dataclass(frozen=True)
class ModelInTraining:
    """A model while it is trained."""

    step: WholeStep
    model: nn.Module
    optimizer: torch.optim.Optimizer

    def take(self) -> None:
        """Take one step on tokens without padding."""
        spec = self.step.spec
        batch = example_batch(spec, self.step.rows, self.step.length)
        self.optimizer.zero_grad(set_to_none=True)
        with self.step.precision.context():
            out = self.model(batch, dict.fromkeys(spec.head_names, cross_entropy) or None)
            parts = [part.float().sum() for part in out.values() if isinstance(part, Tensor)]
        torch.stack(parts).sum().backward()
        del out, parts
        self.optimizer.step()


@dataclass(frozen=True)
class Rehearsed:
    """What a step takes by its rehearsal.

    Attributes:
        peak: the most bytes that tensors have at once: weights, gradients, the optimizer's numbers, activations, and
            what comes and goes.
        passing: bytes that come and go in the heap during a step.
        calls: the operations, and how often each takes place.
    """

    peak: int
    passing: int
    calls: Mapping[RooflineOperation, int]

    @property
    def growth(self) -> int:
        """Bytes that a process takes for it: those of its tensors, and the gaps between them."""
        return self.peak + round(GAPS * self.passing)


def rehearse(step: WholeStep) -> Rehearsed:
    """Return what the second step takes, for the first makes the optimizer's numbers."""
    calls: dict[RooflineOperation, int] = {}

    def watch(func: Any, args: Any, out: Any, operations: int) -> None:
        call = call_of(func, args, out, operations)
        calls[call] = calls.get(call, 0) + 1

    with rehearsed() as noted:
        running = step.begin()
        running.take()
        noted.begin_anew()
        lasting = noted.heap
        noted.watch = watch
        with noted.part("step"):
            running.take()
    return Rehearsed(noted.peak, noted.heap_peak - lasting, calls)
