"""The figures of a ladder: the loss by parameters and by operations, with its law, what it told and what came."""

import math
from collections.abc import Mapping

from orrery.reports.figures import line_chart
from orrery.studies.ladder.findings import LadderFindings
from orrery.studies.ladder.forecast import LEVEL, Forecast

POINTS = 40
"""Places that a curve is drawn through."""
LABELS = {"parameters": "parameters of the blocks", "operations": "floating-point operations of training"}
LAW, FITTED, TOLD, MEASURED = "fitted law", "trained, the law is of these", "predicted", "trained afterwards"


def figures(ladder: LadderFindings, predictions: Mapping[str, Forecast]) -> dict[str, str]:
    """Return an SVG by the name of its file, for each law."""
    return {f"loss-by-{axis}": drawn(ladder, one) for axis, one in predictions.items()}


def drawn(ladder: LadderFindings, one: Forecast) -> str:
    """Return trainings, law and band; at the largest size the prediction with its interval, and what was measured."""
    places = {size["parameters"]: float(size[one.axis]) for size in ladder.sizes}
    curve = spaced(min(places.values()), 1.5 * one.place)
    series = {
        LAW: [(place, one.fit.law.loss(place)) for place in curve],
        FITTED: [(places[run.parameters], run.loss) for run in ladder.fitted],
        TOLD: [(one.place, one.told)],
    }
    if one.measured is not None:
        series[MEASURED] = [(one.place, one.measured)]
    return line_chart(
        series,
        title=f"Loss by {one.axis}: the law and its {LEVEL:.0%} band",
        x_label=LABELS[one.axis],
        y_label="nats a token",
        log_x=True,
        log_y=True,
        spreads={TOLD: [(one.place, *one.interval(one.place))]},
        bands={LAW: [(place, *one.interval(place)) for place in curve]},
        dots=(FITTED, TOLD, MEASURED),
    )


def spaced(low: float, high: float) -> list[float]:
    """Return places from one to another, each the same factor above the one before."""
    step = math.log(high / low) / (POINTS - 1)
    return [low * math.exp(number * step) for number in range(POINTS)]
