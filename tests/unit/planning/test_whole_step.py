"""A rehearsed step holds the bytes that a real one holds at its peak; operations, speeds and refusals of it."""

import io
import json
import pickle
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from orrery.errors import RunError, UsageError
from orrery.families import load_family
from orrery.planning import fitting, measured_step, rehearsal, roofline, samples
from orrery.planning.fitting import check_fits
from orrery.planning.lstm_workspace import workspace_bytes
from orrery.planning.measured_step import libraries_bytes, measure
from orrery.planning.plan import Plan
from orrery.planning.rehearsal import watched
from orrery.planning.roofline import ACROSS, RooflineOperation, call_of
from orrery.planning.samples import PRODUCTS, USUAL, WRITES, products_here
from orrery.planning.speed import Curve, MachineSpeed
from orrery.planning.whole_step import GAPS, WholeStep, rehearse
from orrery.training.precision import Precision

PLAIN = Precision("float32", "plain", "cpu", 1)
NARROW = Precision("bfloat16", "autocast", "cpu", 1)


def tiny(family, precision=PLAIN, optimizer="adamw"):
    rules = load_family(family)
    return WholeStep(rules.spec(rules.TINY), 4, 24, optimizer, precision)


def real(step):
    """The most bytes that tensors with numbers hold in the second step."""
    with watched() as noted:
        running = step.begin()
        running.take()
        noted.begin_anew()
        running.take()
    return noted.peak


@pytest.mark.parametrize("precision", [PLAIN, NARROW], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("family", ["gpt2", "transformer", "gla"])
def test_the_peak_is_that_of_a_real_step(family, precision):
    step = tiny(family, precision)
    step.begin().take()  # tables that a model makes once and keeps are made
    assert rehearse(step).peak == real(step)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_the_optimizer_counts(optimizer):
    step = tiny("gpt2", optimizer=optimizer)
    assert rehearse(step).peak == real(step)
    assert rehearse(step).peak != real(replace(step, optimizer="adamw" if optimizer == "sgd" else "sgd"))


def test_a_larger_model_is_found_out():
    step = tiny("gpt2")
    assert rehearse(step).peak != real(replace(step, rows=5))


def test_the_workspace_of_an_lstm_is_that_of_the_kernel():
    tokens, rows, width = 24, 32, 48
    x, state = torch.zeros(tokens, rows, width), torch.zeros(rows, width)
    weights = [torch.zeros(4 * width, width)] * 2 + [torch.zeros(4 * width)] * 2
    made = torch.ops.aten.mkldnn_rnn_layer(x, *weights, state, state, False, [], 2, width, 1, True, False, False, True)
    assert workspace_bytes(x.shape, width) == pytest.approx(made[3].nbytes, rel=0.01)


def test_a_step_of_an_lstm_counts_its_workspace():
    rules = load_family("lstm")
    step = WholeStep(rules.spec({**rules.TINY, "hidden_size": 64}), 32, 32, "adamw", PLAIN)
    assert rehearse(step).peak == pytest.approx(real(step), rel=0.03)  # a table of the kernel is whole pages


def test_large_tensors_are_mapped_apart_and_leave_no_gaps(monkeypatch):
    step = tiny("gpt2")
    usual = rehearse(step)
    assert 0 < usual.passing < usual.peak
    assert usual.growth == usual.peak + round(GAPS * usual.passing)
    monkeypatch.setattr(rehearsal, "MAPPED", 64)
    monkeypatch.setattr(roofline, "MAPPED", 64)
    apart = rehearse(step)
    assert apart.peak == usual.peak
    assert apart.passing < usual.passing / 100
    assert sum(call.mapped for call in apart.calls) > 0 == sum(call.mapped for call in usual.calls)


def test_a_copy_across_a_matrix_is_told_apart():
    x = torch.zeros(4, 8)
    across, along = (
        call_of(torch.ops.aten.clone.default, (one,), one.contiguous().clone(), 0).name for one in (x.t(), x)
    )
    assert (across, along) == (ACROSS, "clone")


def test_a_view_moves_nothing_and_products_are_told_apart():
    calls = rehearse(tiny("gpt2")).calls
    assert all(call.bytes == 0 for call in calls if call.name == "view")
    assert any(call.operations and call.shapes for call in calls)
    assert all(call.bytes > 0 for call in calls if call.operations)


def test_seconds_are_products_writes_and_calls():
    writes = {USUAL: Curve((1.0,), (4.0,)), "exp": Curve((1.0,), (2.0,))}
    speed = MachineSpeed({USUAL: Curve((1.0,), (10.0,))}, writes, weights=2.0, mapping=0.25, call=0.5)
    product, write, known = (
        RooflineOperation("mm", 100, 8, ((2, 2),), True),
        RooflineOperation("mul", 0, 8, (), True),
        RooflineOperation("exp", 0, 8, (), True),
    )
    view = RooflineOperation("view", 0, 0, (), False)
    assert speed.seconds({product: 1, write: 2, known: 1, view: 4}) == 10.5 + 2 * 2.5 + 4.5 + 4 * 0.5
    narrow, large = RooflineOperation("mm", 10, 80, ((2, 2),), True), RooflineOperation("mul", 0, 8, (), True, mapped=4)
    assert speed.seconds({narrow: 1}) == 40.5  # its weights take longer than its products
    assert speed.seconds({large: 1}) == 2.5 + 4 * 0.25


def test_a_curve_is_straight_between_logarithms_and_level_outside():
    curve = Curve((1.0, 100.0), (1.0, 10_000.0))
    assert [curve.at(size) for size in (0.1, 1.0, 10.0, 100.0, 1e9)] == pytest.approx([1, 1, 100, 10_000, 10_000])


@pytest.mark.parametrize("precision", [PLAIN, NARROW], ids=["float32", "bfloat16"])
def test_every_sample_calls_what_it_is_named_after(precision):
    with precision.context():
        products = products_here()
    assert precision is NARROW or products == PRODUCTS
    for name, makes in (*products.items(), *WRITES.items()):
        with torch.no_grad(), precision.context(), torch.profiler.profile() as seen:
            makes[0]()()
        called = name.removesuffix(" across")
        assert name == USUAL or any(event.name == f"aten::{called}" for event in seen.events()), name


def test_what_the_processor_has_no_product_of_is_not_measured(monkeypatch):
    monkeypatch.setattr(samples, "computes", lambda dtype: dtype == torch.float32)
    assert products_here() == PRODUCTS
    with NARROW.context():
        assert {*PRODUCTS} - {*products_here()} == {"mkldnn_rnn_layer", "mkldnn_rnn_layer_backward"}


class Processes:
    """Stands for the fresh processes of steps: notes what each was asked, and answers in turn."""

    def __init__(self, *answers, code=0, said=b""):
        self.answers, self.code, self.said, self.asked = list(answers), code, said, []

    def __call__(self, command, *, input, env, **how):
        self.asked.append((int(command[-1]), *pickle.loads(input), env))
        out = b"a line of a library\n" + json.dumps(self.answers.pop(0)).encode() if self.answers else b""
        return subprocess.CompletedProcess(command, self.code, out, self.said)


def test_what_steps_took_is_taken_from_the_process_that_it_is_of(monkeypatch):
    apart, usual = ({"libraries": n, "peak": 3 * n, "seconds": 7.0 * n} for n in (10, 1000))
    step, run = tiny("gpt2"), Processes(apart, usual)
    monkeypatch.setattr(measured_step.subprocess, "run", run)
    assert measure(step, 4) == measured_step.MeasuredStep(peak=30, process=1000 + 3000, seconds=7000.0)
    (counts, firsts, steps, environments) = zip(*run.asked, strict=True)
    assert (counts, steps) == ((2, 4), (step, step))
    assert [(first.rows, first.length) for first in firsts] == [(1, measured_step.SHORT)] * 2
    assert environments[0].items() >= measured_step.APART.items()
    assert not environments[1].keys() & measured_step.APART.keys()


def test_the_libraries_are_those_of_a_process_that_holds_no_model(monkeypatch):
    run = Processes({"libraries": 10, "peak": 30, "seconds": 1.0})
    monkeypatch.setattr(measured_step.subprocess, "run", run)
    assert libraries_bytes(PLAIN) == 10
    assert run.asked[0][1] == run.asked[0][2]


def test_a_process_that_ends_before_its_steps_is_an_error_with_its_last_words(monkeypatch):
    for said, told in ((b"first\nKilled\n", "ended with 9: Killed"), (b"", "ended with 9: nothing was said")):
        monkeypatch.setattr(measured_step.subprocess, "run", Processes(code=9, said=said))
        with pytest.raises(RunError, match=told) as refused:
            measure(tiny("gpt2"))
        assert "lower --rows or --length" in refused.value.hint


def test_a_process_tells_what_its_steps_took(monkeypatch, capsys, tmp_path):
    step, threads = tiny("gpt2", replace(PLAIN, threads=3)), []
    monkeypatch.setattr(torch, "set_num_threads", threads.append)  # they are those of all tests in this process
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(pickle.dumps((step, step)))))
    monkeypatch.setattr(sys, "argv", ["-c", "3"])
    monkeypatch.setattr(measured_step, "HIGHEST", tmp_path / "none")  # the mark is of the whole process of the tests
    monkeypatch.setattr(measured_step, "_resident", lambda: 700)
    monkeypatch.setattr(measured_step, "_highest", lambda: 1000)
    ticks = iter((0.0, 5.0, 10.0, 12.0, 20.0, 23.0))
    monkeypatch.setattr(measured_step, "clock_of", lambda threads: lambda: next(ticks))
    measured_step.child()
    assert threads == [3]
    assert json.loads(capsys.readouterr().out) == {"libraries": 700, "peak": 300, "seconds": 3.0}


@pytest.mark.slow
def test_a_real_step_is_measured():
    measured = measure(tiny("gpt2"), 2)
    assert 0 < measured.peak < measured.process
    assert measured.seconds > 0
    # A tiny model adds less than two processes differ by, whose libraries are laid out again each time.
    assert libraries_bytes(PLAIN) == pytest.approx(measured.process, rel=0.05)


def test_what_does_not_fit_is_refused_with_what_would(monkeypatch):
    rules = load_family("gpt2")
    plan = Plan("small", rules.spec(rules.TINY), 64, 24, torch.float32)
    needed = plan.memory + round(GAPS * plan.cost.kept)
    monkeypatch.setattr(fitting, "free_bytes", lambda: needed)
    check_fits(plan)
    monkeypatch.setattr(fitting, "free_bytes", lambda: needed - plan.cost.kept // 2)
    with pytest.raises(UsageError, match=r"needs 0\.0 GB") as refused:
        check_fits(plan)
    rows = int(str(refused.value).split("--rows ")[1].split()[0])
    assert 24 <= rows < 64
    monkeypatch.setattr(fitting, "free_bytes", lambda: 10)
    with pytest.raises(UsageError, match="its weights alone"):
        check_fits(plan)


def test_what_takes_too_long_is_refused(monkeypatch):
    rules = load_family("gpt2")
    plan = Plan("small", rules.spec(rules.TINY), 4, 24, torch.float32)
    monkeypatch.setattr(fitting, "SLOWEST", plan.cost.training.total / 2)
    with pytest.raises(UsageError, match="--rows 2 is little enough"):
        check_fits(plan)
