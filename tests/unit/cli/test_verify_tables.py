"""What ``orrery verify`` shows of its evidence: what passed, what failed, and what did not run."""

import io
import json

import pytest
from rich.console import Console

from orrery.cli.program import run
from orrery.cli.verify import show
from orrery.laws.evidence import Evidence, SlideDiffers
from orrery.laws.registry import Report

KEPT = Evidence("kept", "cache", "gpt2", True, 0.0, 1e-9)
BENT = Evidence("bent", "cache", "gpt2", False, 0.5, 1e-9)
COUNTED = Evidence("counted", "golden", "", True, 3, 3)


def shown(**what):
    console = Console(file=io.StringIO(), width=200, color_system=None)
    show(Report(**what), console)
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("evidence", "cell"),
    [([KEPT], "1"), ([KEPT] * 3, "3"), ([BENT], "1 of 1 FAIL"), ([KEPT, BENT, KEPT], "1 of 3 FAIL")],
)
def test_a_cell_says_how_many_passed_and_how_many_failed(evidence, cell):
    rows = [line.strip() for line in shown(checks=evidence).splitlines()]
    assert f"gpt2 {cell}" in [" ".join(row.split()) for row in rows]


def test_a_law_that_a_family_has_no_use_for_is_a_dash():
    other = Evidence("kept", "padding", "bert", True, 0.0, 1e-9)
    lines = [line.split() for line in shown(checks=[KEPT, other, COUNTED]).splitlines()]
    assert ["family", "cache", "padding"] in lines
    assert ["bert", "-", "1"] in lines
    assert ["gpt2", "1", "-"] in lines
    assert lines.index(["bert", "-", "1"]) < lines.index(["gpt2", "1", "-"])


def test_golden_numbers_stand_above_the_families():
    assert shown(checks=[KEPT, COUNTED, COUNTED]).startswith("checks that passed: golden 2, and by family and law:\n")


@pytest.mark.parametrize(("family", "where"), [("gpt2", " (gpt2)"), ("", "")])
def test_each_failure_has_its_number_and_its_bound(family, where):
    bent = Evidence("bent", "cache", family, False, 0.5, 1e-9)
    assert f"FAIL cache{where}: bent: 0.5 is not within 1e-09\n" in shown(checks=[bent, KEPT])
    assert "FAIL cache" not in shown(checks=[KEPT])


def test_a_slide_that_differs_is_told_with_both_numbers():
    slide = SlideDiffers("GPT-2", "1542M", "1,557,611,200", "it counts no biases")
    assert "slide differs: GPT-2: the slide 1542M, here 1,557,611,200; it counts no biases\n" in shown(slides=[slide])


def test_what_did_not_run_stands_together_by_its_reason():
    not_run = {f"compiled ({family})": "no compiler" for family in ("a", "b", "c", "d")}
    not_run |= {f"cache ({family})": "no compiler" for family in ("a", "b", "c")} | {"ranks": "no gloo"}
    text = shown(not_run=not_run)
    assert "not run:\n" in text
    assert "  compiled (4 families), cache (a), cache (b), cache (c): no compiler\n  ranks: no gloo\n" in text
    assert "not run" not in shown(checks=[KEPT])


def test_seconds_of_small_checks_stand_together():
    seconds = {("cache", "gpt2"): 30.0, ("cache", "bert"): 19.0, ("padding", "gpt2"): 1.0, ("rare", "gpt2"): 0.6}
    assert "processor seconds: cache 49.0, all others 1.6\n" in shown(seconds=seconds)


@pytest.mark.parametrize(("asked", "workers"), [([], 5), (["--workers", "3"], 3), (["--workers", "7"], 5)])
def test_families_are_spread_over_no_more_processes_than_cores(asked, workers, monkeypatch, capsys):
    given = []

    def verify(family, *, everything, workers, device, say):
        given.append((family, everything, workers, device))
        say("cache (gpt2)")
        return Report(checks=[KEPT])

    monkeypatch.setattr("orrery.laws.registry.verify", verify)
    monkeypatch.setattr("orrery.laws.workers.cores", lambda: 5)
    assert run(["verify", "--family", "gpt2", *asked]) == 0
    assert run(["verify", "--all", *asked]) == 0
    assert run(["verify", "--device", "cpu:0", *asked]) == 0
    assert given == [("gpt2", False, workers, "cpu"), (None, True, workers, "cpu"), (None, False, workers, "cpu:0")]
    shown = capsys.readouterr()
    assert "checking cache (gpt2)\n" in shown.err
    assert "all 1 checks passed in " in shown.out


def test_a_check_that_fails_is_exit_1_and_stands_in_the_file(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("orrery.laws.registry.verify", lambda *words, **named: Report(checks=[KEPT, BENT]))
    assert run(["verify", "--json", str(tmp_path / "a.json")]) == 1
    assert "1 of 2 checks FAILED in " in capsys.readouterr().out
    assert [one["passed"] for one in json.loads((tmp_path / "a.json").read_text())["checks"]] == [True, False]
    assert run(["verify", "--json", str(tmp_path / "a.json")]) == 2
