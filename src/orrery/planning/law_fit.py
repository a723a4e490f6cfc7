"""Loss laws fitted to measured losses, with error bars: Hoffmann et al. 2022, appendix D.2.

``min sum_i Huber(LSE(e, a - alpha log N_i, b - beta log D_i) - log L_i)`` from a grid of starts, ``E = exp(e)`` and so
on; ``LSE`` is the logarithm of the sum of exponentials. The law of one variable has one term less.

Differs from the paper: every start is followed by damped Gauss-Newton steps (Levenberg-Marquardt) on reweighted
squares, all at once, to the minimum that L-BFGS finds; and the error bars resample residuals, where the paper fits 80 %
of the runs a hundred times: resampled residuals serve six runs as well, and the spread of such parts is half the error
of the whole.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from orrery.errors import UsageError
from orrery.planning.compute_optimal import LossLaw
from orrery.planning.training_compute import positive

Array = NDArray[np.float64]
Law = TypeVar("Law")

DELTA = 1e-3
"""Where the Huber loss turns from squares to absolute values, in logarithms of the loss (Hoffmann et al. 2022)."""
LEVELS, SCALES, EXPONENTS = (-1.0, -0.5, 0.0, 0.5, 1.0), (0.0, 5.0, 10.0, 15.0, 20.0, 25.0), (0.0, 0.5, 1.0, 1.5, 2.0)
"""The grid of starts: e, a (and b), alpha (and beta): 4,500 for the law of two variables, 150 for that of one."""
COARSE, FINE, KEPT = 25, 400, 12
"""Steps from every start; steps from the best so many of them."""
STEEPEST = 8.0
"""The greatest exponent, up or down: runs of a few sizes cannot tell a steeper fall from a step."""
APART = 1e-3
"""The least share of a variable that the other does not tell, as a standard deviation."""


@dataclass(frozen=True)
class PowerLawPlusConstant:
    """``L(x) = E + A / x^alpha``, where x is a number of parameters, of tokens or of operations (Henighan et al. 2020).

    Attributes:
        irreducible: E.
        scale: A.
        exponent: alpha.
    """

    irreducible: float
    scale: float
    exponent: float

    def loss(self, x: int | float) -> float:
        """Return the loss at x.

        Raises:
            UsageError: x is not a positive finite number.
        """
        positive("size", x, "1e6")
        return float(self.irreducible + self.scale / x**self.exponent)


@dataclass(frozen=True)
class Fit(Generic[Law]):
    """A fitted law and what it would have been with other noise of the same kind.

    Attributes:
        law: the law.
        resampled: the laws fitted to resampled residuals.
        residuals: ``log L - log of the law`` of each run, in the order given.
    """

    law: Law
    resampled: tuple[Law, ...]
    residuals: tuple[float, ...]

    def interval(self, of: Callable[[Law], float], level: float = 0.8) -> tuple[float, float]:
        """Return between which two numbers something of the law lies: a coefficient, or a loss that it predicts.

        Args:
            of: what is asked of a law, such as ``lambda law: law.loss(70e9, 1.4e12)``.
            level: the share of the resampled laws between them; 0.8 is the 10th to the 90th percentile.

        Raises:
            UsageError: a level that is no share, or a fit without resampled laws.
        """
        if not 0 < level < 1:
            raise UsageError(f"a level of {level:g} is no share", "give one between 0 and 1, such as 0.8")
        if not self.resampled:
            raise UsageError("this law was fitted without error bars", "fit it with resamples=100")
        values = [of(law) for law in self.resampled]
        low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)


def fit_loss_law(
    runs: Sequence[tuple[int | float, int | float, int | float]], *, resamples: int = 100, seed: int = 1337
) -> Fit[LossLaw]:
    """Fit ``L = E + A / N^alpha + B / D^beta``.

    Args:
        runs: parameters, training tokens and final loss (nats a token) of each training.
        resamples: fits to resampled residuals, for error bars.
        seed: of the resampling.

    Raises:
        UsageError: fewer than six runs, fewer than three sizes or amounts of text, a number that is not positive and
            finite, or sizes and amounts of text that grow together, of which no run tells the one from the other.
    """
    x, y = _checked(runs, ("parameters", "training tokens"))
    spread = (x - x.mean(0)) / x.std(0)
    if np.linalg.svd(spread, compute_uv=False)[-1] / math.sqrt(len(runs)) < APART:
        raise UsageError(
            "parameters and tokens grow together in all runs: what each of them does cannot be told apart",
            "train some size on other amounts of text too, or fit one of them with fit_power_law",
        )

    def law(fitted: Array) -> LossLaw:
        e, a, b, alpha, beta = map(float, fitted)
        return LossLaw(math.exp(e), math.exp(a), alpha, math.exp(b), beta)

    return _fit(x, y, law, resamples, seed)


def fit_power_law(
    runs: Sequence[tuple[int | float, int | float]], *, resamples: int = 100, seed: int = 1337
) -> Fit[PowerLawPlusConstant]:
    """Fit ``L = E + A / x^alpha``: to sizes trained on one amount of text, or each with its share of one rule.

    Args:
        runs: x (parameters, tokens or operations) and final loss (nats a token) of each training.
        resamples: fits to resampled residuals, for error bars.
        seed: of the resampling.

    Raises:
        UsageError: fewer than four runs, fewer than three different x, or a number that is not positive and finite.
    """
    x, y = _checked(runs, ("size",))

    def law(fitted: Array) -> PowerLawPlusConstant:
        e, a, alpha = map(float, fitted)
        return PowerLawPlusConstant(math.exp(e), math.exp(a), alpha)

    return _fit(x, y, law, resamples, seed)


def _checked(runs: Sequence[tuple[int | float, ...]], names: Sequence[str]) -> tuple[Array, Array]:
    """Return the logarithms of the variables and of the losses."""
    unknown = 2 * len(names) + 1
    if len(runs) <= unknown:
        raise UsageError(f"{len(runs)} runs for a law of {unknown} numbers", f"give {unknown + 1} runs or more")
    for number, run in enumerate(runs, start=1):
        for name, value in zip((*names, "loss"), run, strict=True):
            positive(f"{name} of run {number}", value, "2.5" if name == "loss" else "1e6")
    table = np.log(np.array(runs, dtype=np.float64))
    for column, name in enumerate(names):
        if len(np.unique(table[:, column])) < 3:
            raise UsageError(f"fewer than three different values of {name}", "a curve needs three or more")
    return table[:, :-1], table[:, -1]


def _fit(x: Array, y: Array, law: Callable[[Array], Law], resamples: int, seed: int) -> Fit[Law]:
    """Fit from all starts, and again to resampled residuals from the best few."""
    middle = x.mean(0)
    centred, terms = x - middle, x.shape[1]
    grid = [*product(LEVELS, *[SCALES] * terms, *[EXPONENTS] * terms)]
    start = _shifted(np.array(grid), -middle)
    coarse, heights = _descend(centred, y[None], start, COARSE)
    kept, heights = _descend(centred, y[None], coarse[np.argsort(heights)[:KEPT]], FINE)
    best = kept[np.argmin(heights)]
    residuals = y - _modelled(centred, best[None])[0][0]
    again = _resampled(centred, y - residuals, residuals, best, resamples, seed)
    laws = tuple(law(one) for one in _shifted(again, middle))
    return Fit(law(_shifted(best[None], middle)[0]), laws, tuple(map(float, residuals)))


def _resampled(x: Array, fitted: Array, residuals: Array, best: Array, count: int, seed: int) -> Array:
    """Return the fits to the law with residuals drawn again, widened by the numbers that were fitted."""
    if not count:
        return np.empty((0, len(best)))
    points, unknown = len(fitted), len(best)
    widened = (residuals - residuals.mean()) * math.sqrt(points / (points - unknown))
    drawn = np.random.default_rng(seed).choice(widened, (count, points))
    fits, _ = _descend(x, fitted + drawn, np.repeat(best[None], count, 0), FINE)
    return fits


def _shifted(laws: Array, shift: Array) -> Array:
    """Return the same laws with ``log x`` counted from another place: ``a + alpha shift``."""
    terms = len(shift)
    moved = laws.copy()
    moved[:, 1 : 1 + terms] += laws[:, 1 + terms :] * shift
    return moved


def _modelled(x: Array, laws: Array) -> tuple[Array, Array]:
    """Return the logarithm of the loss of every law at every point, and its derivatives by the numbers of the law."""
    terms = x.shape[1]
    scales, exponents = laws[:, None, 1 : 1 + terms], laws[:, None, 1 + terms :]
    parts = scales - exponents * x
    levels = np.broadcast_to(laws[:, None, :1], (*parts.shape[:2], 1))
    terms_of_each = np.concatenate([levels, parts], -1)
    top = terms_of_each.max(-1, keepdims=True)
    shares = np.exp(terms_of_each - top)
    sums = shares.sum(-1, keepdims=True)
    shares = shares / sums
    slopes = np.concatenate([shares, -x * shares[..., 1:]], -1)
    return (top + np.log(sums))[..., 0], slopes


def _huber(residuals: Array) -> Array:
    """Return the sum over the points of each law."""
    size = np.abs(residuals)
    return np.asarray(np.where(size <= DELTA, size**2 / 2, DELTA * (size - DELTA / 2)).sum(-1))


def _descend(x: Array, y: Array, start: Array, steps: int) -> tuple[Array, Array]:
    """Follow every start downhill; return where each arrives and its Huber loss."""
    laws, damping = start.copy(), np.full(len(start), 1e-2)
    modelled, slopes = _modelled(x, laws)
    heights = _huber(modelled - y)
    for _ in range(steps):
        residuals = modelled - y
        weights = (DELTA / np.maximum(np.abs(residuals), DELTA))[..., None]
        weighted = np.swapaxes(slopes * weights, 1, 2)
        curvature = weighted @ slopes
        diagonal = np.einsum("suu->su", curvature)
        diagonal += damping[:, None] * diagonal + 1e-12
        step = np.linalg.solve(curvature, -weighted @ residuals[..., None])
        tried = laws + np.clip(step[..., 0], -5, 5)
        exponents = slice(1 + x.shape[1], None)
        tried[:, exponents] = np.clip(tried[:, exponents], -STEEPEST, STEEPEST)
        tried_modelled, tried_slopes = _modelled(x, tried)
        tried_heights = _huber(tried_modelled - y)
        better = tried_heights < heights
        laws[better], heights[better] = tried[better], tried_heights[better]
        modelled[better], slopes[better] = tried_modelled[better], tried_slopes[better]
        damping = np.clip(np.where(better, damping / 3, damping * 4), 1e-9, 1e9)
    return laws, heights
