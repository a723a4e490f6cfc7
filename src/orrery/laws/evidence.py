"""What a check hands over: a number, the bound it must keep, and whether it did."""

import math
from dataclasses import dataclass

from torch import Tensor

from orrery.errors import OrreryError

FLOAT64, FLOAT32 = 1e-9, 1e-5
"""The tolerances of the laws, on ``max|a - b| / max(1, max|b|)``."""


@dataclass(frozen=True)
class Evidence:
    """One check that ran.

    Attributes:
        name: what was compared, in words.
        law: the law, or ``golden`` for a number that is known beforehand.
        family: the model family, or ``""`` where none takes part.
        passed: whether the value keeps the bound.
        value: what was found; ``None`` where it is not a finite number.
        bound: the largest value allowed; for a golden count the count itself.
    """

    name: str
    law: str
    family: str
    passed: bool
    value: int | float | None
    bound: int | float


@dataclass(frozen=True)
class SlideDiffers:
    """A slide of the course whose number is not the one that follows from its own definitions."""

    name: str
    slide: str
    ours: str
    why: str


class CannotRunError(OrreryError):
    """A check that this installation cannot carry out; it is listed, never counted as passed."""


def within(name: str, law: str, family: str, value: int | float, bound: int | float) -> Evidence:
    """Return the evidence that ``value`` is at most ``bound``; NaN is not."""
    finite = math.isfinite(value)
    return Evidence(name, law, family, finite and value <= bound, value if finite else None, bound)


def exact(name: str, family: str, count: int, expected: int) -> Evidence:
    """Return the evidence of a golden count."""
    return Evidence(name, "golden", family, count == expected, count, expected)


def deviation(tensor: Tensor, expected: Tensor) -> float:
    """Return ``max|a - b| / max(1, max|b|)``; infinite where either holds a NaN, so that no ``max`` can lose it."""
    if tensor.shape != expected.shape:
        return math.inf
    if not tensor.numel():
        return 0.0
    value = float((tensor - expected).abs().max() / expected.abs().max().clamp(min=1))
    return math.inf if math.isnan(value) else value


def exactly_equal(name: str, law: str, family: str, differences: int) -> Evidence:
    """Return the evidence that nothing differs."""
    return within(name, law, family, differences, 0)
