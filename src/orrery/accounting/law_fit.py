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

from orrery.accounting.compute_optimal import LossLaw
from orrery.accounting.training_compute import positive
from orrery.errors import UsageError

Array = NDArray[np.float64]
Law = TypeVar("Law")

DELTA = 1e-3
"""Where the Huber loss turns from squares to absolute values, in logarithms of the loss (Hoffmann et al. 2022)."""
LEVELS, SCALES, EXPONENTS = (-1.0, -0.5, 0.0, 0.5, 1.0), (0.0, 5.0, 10.0, 15.0, 20.0, 25.0), (0.0, 0.5, 1.0, 1.5, 2.0)
"""The grid of starts: e, a (and b), alpha (and beta): 4,500 for the law of two variables, 150 for that of one."""
COARSE, FINE, KEPT = 25, 400, 12
"""Steps from every start; steps from the best so many of them."""
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
    x_PT, y_P = _checked(runs, ("parameters", "training tokens"))
    spread = (x_PT - x_PT.mean(0)) / x_PT.std(0)
    if np.linalg.svd(spread, compute_uv=False)[-1] / math.sqrt(len(runs)) < APART:
        raise UsageError(
            "parameters and tokens grow together in all runs: what each of them does cannot be told apart",
            "train some size on other amounts of text too, or fit one of them with fit_power_law",
        )

    def law(found: Array) -> LossLaw:
        e, a, b, alpha, beta = map(float, found)
        return LossLaw(math.exp(e), math.exp(a), alpha, math.exp(b), beta)

    return _fit(x_PT, y_P, law, resamples, seed)


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
    x_PT, y_P = _checked(runs, ("size",))

    def law(found: Array) -> PowerLawPlusConstant:
        e, a, alpha = map(float, found)
        return PowerLawPlusConstant(math.exp(e), math.exp(a), alpha)

    return _fit(x_PT, y_P, law, resamples, seed)


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


def _fit(x_PT: Array, y_P: Array, law: Callable[[Array], Law], resamples: int, seed: int) -> Fit[Law]:
    """Fit from all starts, and again to resampled residuals from the best few."""
    middle_T = x_PT.mean(0)
    centred_PT, terms = x_PT - middle_T, x_PT.shape[1]
    grid = [*product(LEVELS, *[SCALES] * terms, *[EXPONENTS] * terms)]
    start_SU = _shifted(np.array(grid), -middle_T)
    coarse_SU, heights_S = _descend(centred_PT, y_P[None], start_SU, COARSE)
    kept_KU, heights_K = _descend(centred_PT, y_P[None], coarse_SU[np.argsort(heights_S)[:KEPT]], FINE)
    best_U = kept_KU[np.argmin(heights_K)]
    residuals_P = y_P - _modelled(centred_PT, best_U[None])[0][0]
    again = _resampled(centred_PT, y_P - residuals_P, residuals_P, best_U, resamples, seed)
    laws = tuple(law(one) for one in _shifted(again, middle_T))
    return Fit(law(_shifted(best_U[None], middle_T)[0]), laws, tuple(map(float, residuals_P)))


def _resampled(x_PT: Array, fitted_P: Array, residuals_P: Array, best_U: Array, count: int, seed: int) -> Array:
    """Return the fits to the law with residuals drawn anew, widened by the numbers that were fitted."""
    if not count:
        return np.empty((0, len(best_U)))
    points, unknown = len(fitted_P), len(best_U)
    widened_P = (residuals_P - residuals_P.mean()) * math.sqrt(points / (points - unknown))
    drawn_RP = np.random.default_rng(seed).choice(widened_P, (count, points))
    found_RU, _ = _descend(x_PT, fitted_P + drawn_RP, np.repeat(best_U[None], count, 0), FINE)
    return found_RU


def _shifted(found_SU: Array, shift_T: Array) -> Array:
    """Return the same laws with ``log x`` counted from another place: ``a + alpha shift``."""
    terms = len(shift_T)
    moved = found_SU.copy()
    moved[:, 1 : 1 + terms] += found_SU[:, 1 + terms :] * shift_T
    return moved


def _modelled(x_PT: Array, found_SU: Array) -> tuple[Array, Array]:
    """Return the logarithm of the loss of every law at every point ``[S, P]``, and its derivatives ``[S, P, U]``."""
    terms = x_PT.shape[1]
    scales_S1T, exponents_S1T = found_SU[:, None, 1 : 1 + terms], found_SU[:, None, 1 + terms :]
    parts_SPT = scales_S1T - exponents_S1T * x_PT
    levels_SP1 = np.broadcast_to(found_SU[:, None, :1], (*parts_SPT.shape[:2], 1))
    all_SPE = np.concatenate([levels_SP1, parts_SPT], -1)
    top_SP1 = all_SPE.max(-1, keepdims=True)
    weights_SPE = np.exp(all_SPE - top_SP1)
    sums_SP1 = weights_SPE.sum(-1, keepdims=True)
    weights_SPE = weights_SPE / sums_SP1
    slopes_SPU = np.concatenate([weights_SPE, -x_PT * weights_SPE[..., 1:]], -1)
    return (top_SP1 + np.log(sums_SP1))[..., 0], slopes_SPU


def _huber(residuals_SP: Array) -> Array:
    """Return the sum over the points of each law."""
    size = np.abs(residuals_SP)
    return np.asarray(np.where(size <= DELTA, size**2 / 2, DELTA * (size - DELTA / 2)).sum(-1))


def _descend(x_PT: Array, y_SP: Array, start_SU: Array, steps: int) -> tuple[Array, Array]:
    """Follow every start downhill; return where each arrives and its Huber loss."""
    found_SU, damping_S = start_SU.copy(), np.full(len(start_SU), 1e-2)
    modelled_SP, slopes_SPU = _modelled(x_PT, found_SU)
    heights_S = _huber(modelled_SP - y_SP)
    for _ in range(steps):
        residuals_SP = modelled_SP - y_SP
        weights_SP1 = (DELTA / np.maximum(np.abs(residuals_SP), DELTA))[..., None]
        weighted_SUP = np.swapaxes(slopes_SPU * weights_SP1, 1, 2)
        curvature_SUU = weighted_SUP @ slopes_SPU
        diagonal = np.einsum("suu->su", curvature_SUU)
        diagonal += damping_S[:, None] * diagonal + 1e-12
        step_SU1 = np.linalg.solve(curvature_SUU, -weighted_SUP @ residuals_SP[..., None])
        tried_SU = found_SU + np.clip(step_SU1[..., 0], -5, 5)
        tried_SP, tried_SPU = _modelled(x_PT, tried_SU)
        tried_S = _huber(tried_SP - y_SP)
        better_S = tried_S < heights_S
        found_SU[better_S], heights_S[better_S] = tried_SU[better_S], tried_S[better_S]
        modelled_SP[better_S], slopes_SPU[better_S] = tried_SP[better_S], tried_SPU[better_S]
        damping_S = np.clip(np.where(better_S, damping_S / 3, damping_S * 4), 1e-9, 1e9)
    return found_SU, heights_S
