"""Evaluation: nats per token, bits per byte and perplexity over held-back text."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from orrery.objectives.protocols import BatchSource, Objective
from orrery.training.distributed import Ranks
from orrery.training.precision import Precision
from orrery.training.randomness import derive_seed
from orrery.training.step import to_device


@dataclass(frozen=True)
class Validation:
    """Held-back text: ``batches`` batches from 0 on, and how many bytes of text its tokens stand for.

    The objective is the training one without what only training has (label smoothing). ``bytes_per_token`` is
    the text's bytes over its tokens, None where the loss is not one of text.
    """

    source: BatchSource
    batches: int
    objective: Objective
    bytes_per_token: float | None = None


@torch.no_grad()
def evaluate(
    model: nn.Module, validation: Validation, precision: Precision, ranks: Ranks, stopped: Callable[[], bool]
) -> dict[str, float] | None:
    """Return ``val/loss`` in nats, ``val/perplexity`` and ``val/bpb``; None if ``stopped`` on the way.

    The ranks share the batches; the mean is over all tokens, whatever the batches' sizes. Training mode comes
    back.
    """
    training = model.training
    model.eval()
    totals: dict[str, list[float]] = {}
    try:
        for first in range(0, validation.batches, ranks.world):
            if ranks.any(stopped()):
                return None
            if first + ranks.rank < validation.batches:
                add_batch(totals, model, validation, first + ranks.rank, precision)
    finally:
        model.train(training)
    return measures(totals, validation.bytes_per_token, ranks)


def add_batch(
    totals: dict[str, list[float]], model: nn.Module, validation: Validation, index: int, precision: Precision
) -> None:
    """Add one batch's terms to ``totals``: weighted sum and count by name."""
    rng = torch.Generator().manual_seed(derive_seed("evaluation", index))
    batch = to_device(validation.objective.prepare(validation.source.batch(index), rng), precision.device)
    with precision.context():
        terms = validation.objective.loss(model, batch)
    for name, term in terms.items():
        total = totals.setdefault(name, [0.0, 0.0])
        total[0] += term.weight * float(term.sum)
        total[1] += float(term.count)


def measures(totals: dict[str, list[float]], bytes_per_token: float | None, ranks: Ranks) -> dict[str, float]:
    """Turn sums and counts into the measures; a count of 0 gives a loss of 0."""
    table = ranks.sum(torch.tensor(list(totals.values()), dtype=torch.float64))
    nats = float((table[:, 0] / table[:, 1].clamp(min=1)).sum())
    found = {"val/loss": nats, "val/perplexity": math.exp(min(nats, 700))}
    if bytes_per_token is not None:
        found["val/bpb"] = nats / math.log(2) / bytes_per_token
    return found
