"""Learning-rate schedules: pure functions from the number of the update, from 1, to a factor of the rate."""

import math
from collections.abc import Callable
from typing import Any

Schedule = Callable[[int], float]


def warm(update: int, warmup: int) -> float:
    """Rise in a straight line to 1 at update ``warmup``, and stay."""
    return min(1.0, update / warmup) if warmup else 1.0


def progress(update: int, start: int, end: int) -> float:
    """Return how much of the way from ``start`` to ``end`` is done, between 0 and 1."""
    return min(1.0, max(0.0, (update - start) / max(1, end - start)))


def constant(update: int, steps: int, warmup: int) -> float:
    """Warm up, then 1."""
    return warm(update, warmup)


def cosine(update: int, steps: int, warmup: int, final: float) -> float:
    """Warm up, then ``final + (1 - final) (1 + cos(pi t)) / 2`` with t from 0 to 1 (SGDR, 2017)."""
    fall = (1 + math.cos(math.pi * progress(update, warmup, steps))) / 2
    return warm(update, warmup) * (final + (1 - final) * fall)


def linear(update: int, steps: int, warmup: int, final: float) -> float:
    """Warm up, then a straight line down to ``final`` at the last update."""
    return warm(update, warmup) * (1 - (1 - final) * progress(update, warmup, steps))


def wsd(update: int, steps: int, warmup: int, decay: int, final: float) -> float:
    """Warm up, stay at 1, and fall straight to ``final`` over the last ``decay`` updates. Hu et al. 2024."""
    return warm(update, warmup) * (1 - (1 - final) * progress(update, steps - decay, steps))


def noam(update: int, steps: int, warmup: int, width: int) -> float:
    """``width**-0.5 * min(n**-0.5, n * warmup**-1.5)``. Vaswani et al. 2017, section 5.3."""
    return width**-0.5 * min(update**-0.5, update * warmup**-1.5)


KINDS: dict[str, Callable[..., float]] = {
    "constant": constant,
    "cosine": cosine,
    "linear": linear,
    "wsd": wsd,
    "noam": noam,
}


def build_schedule(settings: Any, steps: int) -> Schedule:
    """Return the schedule that a recipe's ``training.schedule`` names, for a run of ``steps`` updates."""
    numbers = settings.model_dump(exclude={"kind"})
    return lambda update: KINDS[settings.kind](update, steps, **numbers)
