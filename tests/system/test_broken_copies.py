"""``orrery verify`` fails on a copy of the source with one brick of the mathematics broken."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SOURCE = Path(__file__).parents[2] / "src" / "orrery"


def breaks():
    specification = importlib.util.spec_from_file_location("breaks", BENCHMARKS / "breaks.py")
    module = importlib.util.module_from_spec(specification)
    sys.modules["breaks"] = module  # its dataclass looks itself up there
    specification.loader.exec_module(module)
    return module.BREAKS


def test_every_break_has_its_place_and_a_name_of_its_own():
    faults = breaks()
    assert len(faults) >= 40
    assert len({fault.name for fault in faults}) == len(faults)
    for fault in faults:
        assert fault.wrong != fault.right
        assert (SOURCE / fault.file).read_text(encoding="utf-8").count(fault.right) == 1, fault.name


def tried(tmp_path, *words):
    path = tmp_path / "found.json"
    command = [sys.executable, str(BENCHMARKS / "broken_copies.py"), "--output", str(path), *words]
    run = subprocess.run(command, capture_output=True, text=True, timeout=4900)
    return run.returncode, json.loads(path.read_text())["found"], run.stdout + run.stderr


def test_a_break_is_seen_and_named(tmp_path):
    code, numbers, said = tried(tmp_path, "--only", "slopes between", "--without-control")
    assert code == 0, said
    assert [(one["break"], one["seen"]) for one in numbers["faults"]] == [
        ("ALiBi's slopes between powers of two", True)
    ]
    assert numbers["faults"][0]["outcome"] == "a check failed"
    assert numbers["faults"][0]["by"].startswith("outputs (bloom): 6 heads")


def test_a_copy_that_does_not_answer_in_time_is_no_catch(tmp_path):
    code, numbers, said = tried(tmp_path, "--only", "slopes between", "--without-control", "--limit", "0.01")
    assert code == 1, said
    assert [(one["outcome"], one["seen"]) for one in numbers["faults"]] == [("no answer in time", False)]
    assert numbers["seen"] == 0


@pytest.mark.long
@pytest.mark.timeout(5000)
def test_nearly_every_break_is_seen_and_the_copy_without_one_passes(tmp_path):
    code, numbers, said = tried(tmp_path)
    assert code == 0, said
    assert numbers["control"]["outcome"] == "passed"
    assert len(numbers["faults"]) == len(breaks())
    assert sum(one["seen"] for one in numbers["faults"]) >= 0.95 * len(numbers["faults"])
