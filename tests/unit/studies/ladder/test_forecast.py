"""What a law tells of the largest size, by how much it misses, and where its intervals lie."""

import math

import numpy as np
import pytest

from ladder_toy import followed
from orrery.planning.law_fit import Fit, PowerLawPlusConstant
from orrery.studies.ladder.findings import LadderRun, findings_from
from orrery.studies.ladder.forecast import LEVEL, Forecast, forecasts


def law(x):
    return 1.2 + 30 / x**0.35


def test_losses_of_a_law_are_told_before_and_compared_after():
    ladder = followed(law)
    told = forecasts(ladder)
    assert told["parameters"].told == pytest.approx(law(640_000), rel=2e-3)
    assert told["parameters"].miss is None
    before = told["parameters"].as_json()
    ladder.runs.append(LadderRun(640_000, 1, 1.02 * told["parameters"].told, 2.0, 60.0))
    after = forecasts(ladder)["parameters"].as_json()
    assert after["predicted"] == before["predicted"]  # the largest size is no part of the fit
    assert after["miss"] == pytest.approx(1 / 1.02 - 1)


def test_the_law_of_operations_is_that_of_parameters_when_they_grow_together():
    told = forecasts(followed(law))
    one, other = told["parameters"], told["operations"]
    assert other.told == pytest.approx(one.told, rel=1e-5)
    assert 2 * other.fit.law.exponent == pytest.approx(one.fit.law.exponent, rel=1e-3)


def test_nothing_is_told_before_every_smaller_size_is_done():
    ladder = followed(law)
    ladder.runs.pop()
    assert forecasts(ladder) == {}


def test_the_interval_holds_the_share_of_trainings_that_it_says():
    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.01, 400)
    spread = 0.005
    laws = tuple(PowerLawPlusConstant(2.0 * math.exp(shift), 1e-12, 0.5) for shift in rng.normal(0, spread, 400))
    made = Forecast("parameters", Fit(PowerLawPlusConstant(2.0, 1e-12, 0.5), laws, tuple(noise)), 1e6, None)
    low, high = made.interval(1e6)
    trainings = 2.0 * np.exp(rng.normal(0, math.hypot(0.01, spread), 100_000))
    assert np.mean((trainings > low) & (trainings < high)) == pytest.approx(LEVEL, abs=0.03)


def test_the_file_gives_back_what_was_found():
    ladder = followed(law)
    again = findings_from(ladder.as_json())
    assert again == ladder
    assert again.signal is None, "nothing stopped it"
    assert {axis: one.as_json() for axis, one in forecasts(again).items()} == {
        axis: one.as_json() for axis, one in forecasts(ladder).items()
    }
