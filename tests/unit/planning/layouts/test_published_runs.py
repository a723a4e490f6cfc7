"""Published runs beside predictions: within 15 %, or the reason is said, and nothing is fitted to them."""

from dataclasses import replace

import pytest

from orrery.planning.layouts.layout_plan import plan_layout
from orrery.planning.layouts.published import PredictedRun, benchmarks, comparisons, llama_405b, runs
from orrery.planning.layouts.tables import published_rows
from orrery.planning.machines import MACHINES, load_machine


@pytest.mark.parametrize("run", benchmarks(), ids=lambda run: run.machine)
def test_the_efficiency_of_a_machine_is_that_of_its_benchmark(run):
    predicted = PredictedRun(run, plan_layout(run.work, run.training, run.layout, load_machine(run.machine)))
    assert predicted.predicted == pytest.approx(run.published, abs=1.5e-3)


def test_a_benchmark_is_no_run_that_is_predicted():
    assert not {run.name for run in benchmarks()} & {run.name for run in runs()}


def test_every_run_is_within_15_percent_or_says_why():
    compared = comparisons()
    assert len(compared) == 17
    outside = [one for one in compared if not one.within]
    assert [one.run.name for one in outside] == ["Llama 3 405B, 131k tokens"]
    assert all(one.run.reason for one in outside)
    assert all(abs(one.ratio - 1) < 0.17 for one in outside)
    assert not any(one.run.reason for one in compared if one.within)


def test_the_reason_is_true():
    one = comparisons()[-1]
    share = one.plan.time.attention / one.plan.time.total
    assert f"attention is {100 * share:.0f} % of" in one.run.reason
    machine = one.plan.machine
    faster = replace(machine, efficiency=replace(machine.efficiency, attention=0.45))
    predicted = plan_layout(one.run.work, one.run.training, one.plan.layout, faster).mfu(one.run.counted)
    assert f"gives {100 * predicted:.1f} %" in one.run.reason


def test_published_degrees_are_the_run_s():
    """What is free is what nobody published; the devices are all used, but for GPT-3's, whose layout nobody did."""
    for one in comparisons():
        if one.run.machine != "v100":
            assert one.plan.layout.devices == one.run.devices
        for name in ("tensor", "context", "fsdp", "zero", "sequence"):
            if one.run.layout.fsdp > 1 or name != "zero":
                assert getattr(one.plan.layout, name) == getattr(one.run.layout, name)


def test_the_machine_is_one_for_all_its_runs():
    assert all(one.plan.machine is MACHINES[one.run.machine] for one in comparisons())


def test_more_devices_and_more_context_lower_the_utilisation_of_llama_as_published():
    short, wide, long = (one for one in comparisons() if one.run.work.name == "llama-3-405b")
    assert short.predicted > wide.predicted > long.predicted
    assert short.run.published > wide.run.published > long.run.published


def test_llama_405b_has_its_published_size_and_operations():
    work = llama_405b()
    assert work.parameters == 405_853_388_800
    assert work.operations(8_192, 0) * 15.6e12 == pytest.approx(3.8e25, rel=0.01)


def test_rows_hold_the_numbers_and_the_verdict():
    rows = {row[0]: row for row in published_rows(comparisons())}
    palm = rows["PaLM 540B"]
    assert palm[1:4] == ("6,144 tpu-v4", "MFU", "46.2 %")
    assert palm[-1] == "within 15 %"
    assert "FlashAttention-2" in rows["Llama 3 405B, 131k tokens"][-1]
