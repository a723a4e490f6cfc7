"""How small models of a study train: Adam, a rate that falls in a line, gradients clipped to norm one."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, LinearLR, LRScheduler

from orrery.families import load_family
from orrery.models.inputs import Batch
from orrery.objectives import Objective

LAST_RATE = 0.05
"""The part of the rate that is left at the end."""
Schedule = Callable[[torch.optim.Optimizer, int], LRScheduler]
"""Makes the schedule of an optimizer for a number of steps."""


def build(family: str, seed: int, config: Mapping[str, Any]) -> Any:
    """Return a model of a family with torch's own initial weights, drawn from the seed."""
    return build_spec(load_family(family).spec(config), seed)


def build_spec(spec: Any, seed: int) -> Any:
    """Return a model of a spec with torch's own initial weights, drawn from the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return spec.build(0)


def falling(optimizer: torch.optim.Optimizer, steps: int) -> LRScheduler:
    """Let the rate fall in a line."""
    return LinearLR(optimizer, 1.0, LAST_RATE, steps)


def warmed_up(part: float) -> Schedule:
    """Return a schedule that rises in a line during a part of the steps and falls in a line during the others."""

    def schedule(optimizer: torch.optim.Optimizer, steps: int) -> LRScheduler:
        top = max(1, round(part * steps))

        def share(step: int) -> float:
            return min((step + 1) / top, 1 - (1 - LAST_RATE) * max(0, step - top) / (steps - top))

        return LambdaLR(optimizer, share)

    return schedule


def fit(
    model: nn.Module,
    objective: Objective,
    batch: Callable[[torch.Generator], Batch],
    steps: int,
    rate: float,
    seed: int,
    *,
    schedule: Schedule = falling,
    watch: Callable[[int], None] = lambda step: None,
) -> list[float]:
    """Train for some steps on batches drawn from the seed, leave the model in eval mode, and return each step's loss.

    ``watch`` is told of each step before it is taken, with the model in eval mode.
    """
    rng = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    rates, losses = schedule(optimizer, steps), []
    for step in range(steps):
        watch(step)
        model.train()
        terms = objective.loss(model, objective.prepare(batch(rng), rng))
        optimizer.zero_grad()
        loss = torch.stack([term.weight * term.sum / term.count for term in terms.values()]).sum()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        rates.step()
        model.eval()
        losses.append(float(loss.detach()))
    return losses


def parameters(model: nn.Module) -> int:
    """Return how many numbers the model learns."""
    return sum(parameter.numel() for parameter in model.parameters())
