"""What figures of labs draw: means over the seeds, and exponents fitted to curves."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from orrery.planning.log_line import log_line
from orrery.reports.figures import Number


def mean(runs: Sequence[Mapping[str, Any]], *path: str) -> list[tuple[float, float]]:
    """Return the points of a curve, x as the keys at a path of the numbers have it, y the mean over the seeds."""
    curves = [at(numbers, path) for numbers in runs]
    return [(float(x), sum(curve[x] for curve in curves) / len(curves)) for x in curves[0]]


def at(numbers: Mapping[str, Any], path: Sequence[str]) -> Any:
    """Return what stands at a path."""
    value: Any = numbers
    for name in path:
        value = value[name]
    return value


def exponent(curve: Mapping[str, Number]) -> float:
    """Return ``a`` of the best ``y = c x^a``: the slope of a line through the logarithms."""
    return log_line([float(key) for key in curve], list(curve.values()))[0]


def equal_at(one: Mapping[str, Number], other: Mapping[str, Number]) -> float:
    """Return the length at which the fitted lines of both cross; infinite where they are parallel."""
    gap = {n: one[n] / other[n] for n in one}
    steep = exponent(gap)
    middle = sum(math.log(int(n)) for n in gap) / len(gap)
    height = sum(math.log(value) for value in gap.values()) / len(gap)
    return math.exp(middle - height / steep) if steep else math.inf
