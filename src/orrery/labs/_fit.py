"""How a lab trains: Adam, a rate that falls in a line, gradients clipped to norm one."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import nn

from orrery.families import load_family
from orrery.models.inputs import Batch
from orrery.objectives import Objective

LAST_RATE = 0.05
"""The part of the rate that is left at the end."""


def build(family: str, seed: int, config: Mapping[str, Any]) -> Any:
    """Return a model of a family with torch's own initial weights, drawn from the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return load_family(family).spec(config).build(0)


def fit(
    model: nn.Module,
    objective: Objective,
    batch: Callable[[torch.Generator], Batch],
    steps: int,
    rate: float,
    seed: int,
) -> None:
    """Train for some steps on batches drawn from the seed, and leave the model in eval mode."""
    rng = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, LAST_RATE, steps)
    model.train()
    for _ in range(steps):
        terms = objective.loss(model, objective.prepare(batch(rng), rng))
        optimizer.zero_grad()
        torch.stack([term.sum / term.count for term in terms.values()]).sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    model.eval()


def parameters(model: nn.Module) -> int:
    """Return how many numbers the model learns."""
    return sum(parameter.numel() for parameter in model.parameters())
