"""Evaluation: the metrics of a model on examples held back."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor, nn

from orrery.data.batches.seeds import derive_seed
from orrery.data.sources import AnsweredSource, BatchSource, HeldBack
from orrery.metrics import Metric, possible
from orrery.models.inputs import Inputs
from orrery.objectives import Objective
from orrery.training.contract import checked_sums, checked_value, finished_batch
from orrery.training.distributed import Ranks
from orrery.training.precision import Precision
from orrery.training.step import to_device


@dataclass(frozen=True)
class Validation:
    """Examples held back: ``batches`` batches from 0 on, and what is measured on them.

    Attributes:
        source: gives the batches.
        batches: how many there are.
        objective: the training one without what only training has (label smoothing).
        bytes_per_token: the text's bytes over its tokens, None where the loss is not one of text.
        metrics: by name; by default those that the objective names.
        best: the name of the metric that decides which model is the best; by default the first.
        inputs: what the model reads of a batch, which is then checked.
    """

    source: BatchSource
    batches: int
    objective: Objective
    bytes_per_token: float | None = None
    metrics: Mapping[str, Metric] | None = None
    best: str | None = None
    inputs: Inputs = field(default_factory=dict)

    @cached_property
    def measured(self) -> Mapping[str, Metric]:
        """What is measured, by name."""
        if self.metrics is not None:
            return self.metrics
        usual = possible(self.objective.metrics, counts_bytes=self.bytes_per_token is not None)
        return {name: metric() for name, metric in usual.items()}

    @property
    def decides(self) -> str:
        """The name of the metric that decides which model is the best."""
        return self.best or next(iter(self.measured))

    @property
    def held_back(self) -> HeldBack:
        """The examples alone."""
        return HeldBack(self.source, self.batches, self.bytes_per_token)


Totals = dict[str, Tensor]
"""Of each metric, what the batches so far add up to, in float64."""


@torch.no_grad()
def evaluate(
    model: nn.Module, validation: Validation, precision: Precision, ranks: Ranks, stopped: Callable[[], bool]
) -> dict[str, float] | None:
    """Return ``val/NAME`` of each metric; None if ``stopped`` on the way.

    The ranks share the batches; a mean is over all tokens, whatever the batches' sizes. Training mode comes back.
    """
    training = model.training
    model.eval()
    totals: Totals = {}
    try:
        for first in range(0, validation.batches, ranks.parts):
            if ranks.any(stopped()):
                return None
            index = first + ranks.part
            if index < validation.batches:
                add_batch(totals, model, validation, index, precision)
            elif isinstance(validation.source, AnsweredSource):
                validation.source.batch(0)  # processes that share the weights of what answers ask it equally often
    finally:
        model.train(training)
    return measures(totals, validation, ranks)


def add_batch(totals: Totals, model: nn.Module, validation: Validation, index: int, precision: Precision) -> None:
    """Add what one batch adds to each metric's total."""
    rng = torch.Generator().manual_seed(derive_seed("evaluation", index))
    batch = finished_batch(validation.objective, validation.source.batch(index), rng, validation.inputs)
    batch = to_device(batch, precision.device)
    with precision.context():
        terms = validation.objective.loss(model, batch)
        sums_by_name = {name: metric.measure(model, batch, terms) for name, metric in validation.measured.items()}
    for name, sums in sums_by_name.items():
        own = checked_sums(name, sums)
        totals[name] = totals[name] + own if name in totals else own


def measures(totals: Totals, validation: Validation, ranks: Ranks) -> dict[str, float]:
    """Return what the totals of all ranks come to, under ``val/NAME``."""
    summed = {name: _summed(totals.get(name), ranks) for name in validation.measured}
    held_back = validation.held_back
    values = {name: metric.value(summed[name], held_back) for name, metric in validation.measured.items()}
    return {f"val/{name}": checked_value(name, value) for name, value in values.items()}


def _summed(own: Tensor | None, ranks: Ranks) -> Tensor:
    """Return the sum over the ranks, of which one without a batch has nothing to add."""
    own = torch.zeros(0, dtype=torch.float64) if own is None else own
    width, adding = ranks.sum(torch.tensor([len(own), int(len(own) > 0)])).tolist()
    summed = torch.zeros(width // max(1, adding), dtype=torch.float64)
    summed[: len(own)] = own
    return ranks.sum(summed)
