"""The sweep of a model's learning rate and warm-up: which trial comes next, and what all of them give."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orrery.errors import UsageError
from orrery.studies.compare.budgets import Budget
from orrery.studies.compare.findings import SweepResult, Trial

FACTOR = 3.0
"""From one rate of the first three to the next."""
WARMUPS = (0.05, 0.0)
"""Parts of a training that the rate rises in; all rates are tried with the first."""


@dataclass(frozen=True)
class Sweep:
    """How much is tried, the same for every model: ``rates`` trials of the rate, one more for each other warm-up.

    A trial gets ``share`` of the greatest budget.
    """

    rates: int = 5
    share: float = 0.1
    warmups: Sequence[float] = WARMUPS

    @property
    def trials(self) -> int:
        """The trials of each model."""
        return self.rates + len(self.warmups) - 1

    def check(self) -> None:
        """Refuse what cannot be carried out.

        Raises:
            UsageError: a warm-up that is no part of a training, or named twice, or a share that is none.
        """
        if not self.warmups or len(set(self.warmups)) < len(self.warmups):
            raise UsageError(f"--warmups: {self.warmups} are not different", "give parts of a training, such as 0.05 0")
        for warmup in self.warmups:
            if not 0 <= warmup < 1:
                raise UsageError(f"--warmups: {warmup:g} is no part of a training", "give parts from 0 to below 1")
        if not 0 < self.share <= 1:
            raise UsageError(f"--sweep-share: {self.share:g} is no part of the budget", "give one above 0, at most 1")

    def settings(self, greatest: Budget) -> dict[str, Any]:
        """Return what a sweep that is continued must find again."""
        trial = greatest.part(self.share)
        return {
            "rates": self.rates,
            "warmups": list(self.warmups),
            "share": self.share,
            "trial": trial.amount,
            "unit": trial.unit,
        }

    def next(self, trials: Sequence[Trial], centre: float) -> tuple[float, float] | None:
        """Return the rate and the warm-up of the next trial, or nothing after the last.

        The centre, a third of it and three times it come first. While the best lies at an edge the next is a step
        outwards; else it is the middle, by ratio, between the best and the better of its neighbours. Then the other
        warm-ups are tried at the best rate.
        """
        if len(trials) < self.rates:
            return self._rate(trials, centre), self.warmups[0]
        left = self.warmups[1 + len(trials) - self.rates :]
        best = min(trials[: self.rates], key=lambda trial: trial.loss)
        return (best.rate, left[0]) if left else None

    def _rate(self, trials: Sequence[Trial], centre: float) -> float:
        if len(trials) < 3:
            return centre * (1.0, 1 / FACTOR, FACTOR)[len(trials)]
        tried = sorted(trials, key=lambda trial: trial.rate)
        place = min(range(len(tried)), key=lambda index: tried[index].loss)
        if place == 0:
            return tried[0].rate / FACTOR
        if place == len(tried) - 1:
            return tried[-1].rate * FACTOR
        neighbour = min(tried[place - 1], tried[place + 1], key=lambda trial: trial.loss)
        return math.sqrt(tried[place].rate * neighbour.rate)


def at_edge(result: SweepResult) -> bool:
    """Say whether the best rate is the least or the greatest of those tried: the sweep has not enclosed it."""
    rates = {trial.rate for trial in result.trials}
    return len(rates) > 1 and result.best.rate in (min(rates), max(rates))
