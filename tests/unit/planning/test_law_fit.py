"""Loss laws fitted to losses that a known law made: the law comes back, and its error bars hold it."""

import math

import numpy as np
import pytest

from orrery.errors import UsageError
from orrery.planning.compute_optimal import CHINCHILLA, LossLaw
from orrery.planning.law_fit import STEEPEST, PowerLawPlusConstant, fit_loss_law, fit_power_law

SIZES, TOKENS = np.geomspace(7e7, 1.6e10, 4), np.geomspace(5e9, 5e11, 4)
SMALL = PowerLawPlusConstant(1.2, 30.0, 0.3)
LADDER = [*map(float, np.geomspace(1e4, 1e6, 8))]


def grid(law: LossLaw, noise: float = 0.0, seed: int = 0) -> list[tuple[float, float, float]]:
    rng = np.random.default_rng(seed)
    return [
        (float(n), float(d), law.loss(n, d) * math.exp(noise * rng.standard_normal())) for n in SIZES for d in TOKENS
    ]


def ladder(noise: float, seed: int) -> list[tuple[float, float]]:
    rng = np.random.default_rng(seed)
    return [(n, SMALL.loss(n) * math.exp(noise * rng.standard_normal())) for n in LADDER]


def test_the_law_of_two_variables_comes_back_and_an_outlier_does_not_move_it() -> None:
    runs = grid(CHINCHILLA)
    runs[5] = (*runs[5][:2], 1.3 * runs[5][2])
    fit = fit_loss_law(runs, resamples=0)
    assert vars(fit.law) == pytest.approx(vars(CHINCHILLA), rel=5e-2)  # the Huber loss still feels it a little
    assert fit.law.loss(70e9, 1.4e12) == pytest.approx(CHINCHILLA.loss(70e9, 1.4e12), rel=1e-3)
    assert fit.residuals[5] == pytest.approx(math.log(1.3), rel=1e-2)
    assert max(abs(one) for number, one in enumerate(fit.residuals) if number != 5) < 1e-3


def test_the_law_of_two_variables_comes_back_exactly_without_noise() -> None:
    assert vars(fit_loss_law(grid(CHINCHILLA), resamples=0).law) == pytest.approx(vars(CHINCHILLA), rel=1e-6)


def test_the_best_size_lies_within_its_error_bars() -> None:
    fit = fit_loss_law(grid(CHINCHILLA, noise=3e-3), resamples=40)
    low, high = fit.interval(lambda law: law.best(5.76e23).parameters, level=0.95)
    assert low < CHINCHILLA.best(5.76e23).parameters < high
    assert low < fit.law.best(5.76e23).parameters < high
    wide = fit.interval(lambda law: law.size_exponent, level=0.95)
    narrow = fit.interval(lambda law: law.size_exponent, level=0.5)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_the_law_of_one_variable_comes_back() -> None:
    fit = fit_power_law(ladder(0.0, 0)[:6], resamples=0)
    assert vars(fit.law) == pytest.approx(vars(SMALL), rel=1e-6)


def test_a_step_has_a_law_that_every_size_can_be_asked_of() -> None:
    sizes = [20_000, 30_000, 45_000]
    runs = [(size, loss + noise) for size, loss in zip(sizes, (3.0, 2.0, 2.0), strict=True) for noise in (0.0, 0.01)]
    fit = fit_power_law(runs)
    for law in (fit.law, *fit.resampled):
        assert abs(law.exponent) <= STEEPEST
        assert math.isfinite(law.loss(60_000))
        assert math.isfinite(law.loss(1e30))
    assert fit.law.loss(60_000) == pytest.approx(2.0, rel=1e-2)


def test_error_bars_hold_the_truth_as_often_as_they_say() -> None:
    held = 0
    for seed in range(16):
        fit = fit_power_law(ladder(5e-3, seed), resamples=60, seed=seed)
        low, high = fit.interval(lambda law: law.loss(4e6), level=0.8)
        held += low <= SMALL.loss(4e6) <= high
    assert held >= 9  # of 16: 12.8 are expected


def test_the_same_seed_gives_the_same_bars() -> None:
    runs = ladder(5e-3, 1)
    first, again, other = (fit_power_law(runs, resamples=5, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first.law == other.law
    assert first.resampled != other.resampled


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda runs: runs[:5], "5 runs for a law of 5 numbers.*give 6 runs"),
        (lambda runs: [(n, 20 * n, loss) for n, _, loss in runs], "grow together.*fit_power_law"),
        (
            lambda runs: [(1e8, d, loss) for _, d, loss in runs],
            "fewer than three different values of parameters.*a curve needs three",
        ),
        (lambda runs: [*runs, (1e8, -5, 2.0)], "training tokens of run 17: -5"),
        (lambda runs: [*runs, (1e8, 1e9, math.nan)], "loss of run 17: nan"),
        (lambda runs: [*runs, (0, 1e9, 2.0)], "parameters of run 17: 0"),
    ],
)
def test_runs_that_no_law_follows_from_are_refused(change, words) -> None:
    with pytest.raises(UsageError, match=words):
        fit_loss_law(change(grid(CHINCHILLA)))


def test_too_few_sizes_a_level_that_is_no_share_and_missing_bars_are_refused() -> None:
    with pytest.raises(UsageError, match=r"3 runs for a law of 3 numbers \(hint: give 4 runs or more"):
        fit_power_law(ladder(0.0, 0)[:3])
    fit = fit_power_law(ladder(0.0, 0), resamples=0)
    for level in (0.0, 1.0):
        with pytest.raises(UsageError, match=rf"a level of {level:g} is no share \(hint: give one between 0 and 1"):
            fit.interval(lambda law: law.exponent, level=level)
    with pytest.raises(UsageError, match=r"without error bars \(hint: fit it with resamples=100"):
        fit.interval(lambda law: law.exponent)
    with pytest.raises(UsageError, match="size: 0"):
        fit.law.loss(0)
