"""The sweep finds a planted best rate, tries as often for everyone, and says what it cannot do."""

import math

import pytest

from orrery.errors import UsageError
from orrery.studies.compare.budgets import Budget
from orrery.studies.compare.findings import SweepResult, Trial
from orrery.studies.compare.sweep import Sweep, at_edge


def carried_out(sweep, centre, loss):
    """The trials of a sweep over a made-up loss of rate and warm-up."""
    result = SweepResult()
    while (chosen := sweep.next(result.trials, centre)) is not None:
        assert len(result.trials) < 20
        result.trials.append(Trial(*chosen, steps=1, tokens=1, seconds=0.0, bits_per_byte=loss(*chosen)))
    return result


def bowl(best, warmup=0.05):
    """A loss that is least at a rate and a warm-up."""
    return lambda rate, warm: 2 + math.log(rate / best) ** 2 + 0.1 * abs(warm - warmup)


@pytest.mark.parametrize("off", [0.12, 0.3, 0.6, 1.0, 1.6, 3.0, 8.0])
@pytest.mark.parametrize("warmup", [0.0, 0.05])
def test_a_planted_best_rate_is_found(off, warmup):
    sweep, centre = Sweep(), 2e-3
    result = carried_out(sweep, centre, bowl(off * centre, warmup))
    assert len(result.trials) == sweep.trials == 6
    assert abs(math.log(result.best.rate / (off * centre))) <= math.log(3) / 2 + 1e-9
    assert result.best.warmup == warmup


def test_the_centre_comes_first_and_then_its_neighbours():
    tried = [trial.rate for trial in carried_out(Sweep(), 1.0, bowl(1.0)).trials]
    assert tried[:3] == pytest.approx([1.0, 1 / 3, 3.0])
    assert sorted(tried[3:5]) == pytest.approx(sorted([math.sqrt(1 / 3), math.sqrt(math.sqrt(1 / 3))]))
    assert tried[5] == 1.0


def test_it_goes_on_outwards_while_the_best_lies_at_the_edge():
    result = carried_out(Sweep(), 1.0, bowl(1000.0))
    assert [trial.rate for trial in result.trials[3:5]] == pytest.approx([9.0, 27.0])
    assert at_edge(result)
    assert not at_edge(carried_out(Sweep(), 1.0, bowl(1.0)))


def test_what_came_apart_is_the_worst():
    result = carried_out(Sweep(), 1.0, lambda rate, warm: None if rate > 0.5 else 3 - rate)
    assert result.best.rate <= 0.5
    assert len(result.trials) == 6
    assert result.as_json()["trials"][0]["bits_per_byte"] is None
    assert result.as_json()["chosen"] == {"rate": result.best.rate, "warmup": result.best.warmup}


@pytest.mark.parametrize(("rates", "warmups"), [(1, (0.05,)), (2, (0.0, 0.1, 0.2)), (9, (0.0, 0.05))])
def test_the_number_of_trials_depends_on_the_sweep_alone(rates, warmups):
    sweep = Sweep(rates=rates, warmups=warmups)
    counts = {len(carried_out(sweep, 1.0, bowl(best)).trials) for best in (1e-3, 0.5, 1.0, 40.0)}
    assert counts == {sweep.trials} == {rates + len(warmups) - 1}


@pytest.mark.parametrize(
    ("sweep", "message"),
    [
        (Sweep(warmups=()), "not different"),
        (Sweep(warmups=(0.1, 0.1)), "not different"),
        (Sweep(warmups=(1.0,)), "1 is no part of a training"),
        (Sweep(share=0.0), "0 is no part of the budget"),
        (Sweep(share=1.5), "1.5 is no part of the budget"),
    ],
)
def test_what_cannot_be_swept_is_refused(sweep, message):
    with pytest.raises(UsageError, match=message):
        sweep.check()


def test_a_trial_gets_its_part_of_the_greatest_budget():
    assert Sweep(share=0.25).settings(Budget(8.0, "minutes"))["trial"] == 2.0
    assert Budget(3, "steps").part(0.1) == Budget(1, "steps")
    assert [Budget(*each).label for each in ((1, "steps"), (0.5, "minutes"), (2000, "steps"))] == [
        "1 step",
        "0.5 minutes",
        "2,000 steps",
    ]
