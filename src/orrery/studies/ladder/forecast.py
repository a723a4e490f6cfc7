"""The loss of the largest size, told by the law that is fitted to all smaller ones."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from orrery.planning.law_fit import Fit, PowerLawPlusConstant, fit_power_law
from orrery.studies.ladder.findings import LadderFindings

AXES = ("parameters", "operations")
"""What the loss is a function of; the first is what the prediction is held by."""
LEVEL = 0.8
"""The share of trainings that lie in an interval."""
UNKNOWN = 3
"""Numbers of the law."""


@dataclass(frozen=True)
class Forecast:
    """A law and what it tells.

    Attributes:
        axis: what the loss is a function of.
        fit: the law, with those of resampled residuals.
        place: of the largest size on the axis.
        measured: the loss of the largest size, once it is trained.
    """

    axis: str
    fit: Fit[PowerLawPlusConstant]
    place: float
    measured: float | None

    @property
    def told(self) -> float:
        """The loss that the law tells of the largest size."""
        return self.fit.law.loss(self.place)

    @property
    def miss(self) -> float | None:
        """What the prediction is off by, as a part of the measured loss; above zero where the law told too much."""
        return None if self.measured is None else self.told / self.measured - 1

    def interval(self, place: float) -> tuple[float, float]:
        """Return between which losses a single training would lie in ``LEVEL`` of all cases.

        The laws of resampled residuals say how well the law is known; the residuals, widened by the numbers that were
        fitted, how far one training lies from it.
        """
        laws_R = np.array([law.loss(place) for law in self.fit.resampled])
        low, high = np.quantile(laws_R[:, None] * np.exp(self._noise), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return float(low), float(high)

    @cached_property
    def _noise(self) -> Any:
        residuals_P = np.array(self.fit.residuals)
        return (residuals_P - residuals_P.mean()) * math.sqrt(len(residuals_P) / (len(residuals_P) - UNKNOWN))

    def as_json(self) -> dict[str, Any]:
        """Return law, prediction and miss with their intervals."""
        law = self.fit.law
        return {
            "axis": self.axis,
            "irreducible": [law.irreducible, *self.fit.interval(lambda one: one.irreducible, LEVEL)],
            "scale": [law.scale, *self.fit.interval(lambda one: one.scale, LEVEL)],
            "exponent": [law.exponent, *self.fit.interval(lambda one: one.exponent, LEVEL)],
            "place": self.place,
            "predicted": [self.told, *self.interval(self.place)],
            "measured": self.measured,
            "miss": self.miss,
            "level": LEVEL,
        }


def forecasts(ladder: LadderFindings) -> dict[str, Forecast]:
    """Return what the laws tell by their axis; none before every smaller size is trained.

    The same trainings give the same numbers, so that what is told before the largest size is trained stands afterwards.
    """
    if not ladder.fittable:
        return {}
    measured = None if ladder.measured is None else ladder.measured.loss
    made = {}
    for axis in AXES:
        places = {size["parameters"]: float(size[axis]) for size in ladder.sizes}
        fit = fitted(tuple((places[run.parameters], run.loss) for run in ladder.fitted))
        made[axis] = Forecast(axis, fit, float(ladder.largest[axis]), measured)
    return made


@lru_cache(maxsize=len(AXES))
def fitted(runs: tuple[tuple[float, float], ...]) -> Fit[PowerLawPlusConstant]:
    """Return the law of places and losses; it is asked for at every stage from the prediction on."""
    return fit_power_law(runs)
