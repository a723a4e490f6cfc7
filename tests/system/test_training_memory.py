"""What a training holds of memory does not grow with the shapes of its batches."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from orrery.settings import KERNELS, bound_kernel_caches

ROOT = Path(__file__).parents[2]
BENCHMARK = ROOT / "benchmarks" / "memory.py"
CACHES = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY")


@pytest.fixture
def unset(monkeypatch):
    for name in CACHES:
        monkeypatch.setenv(name, "")  # so that it is put back as it was
        monkeypatch.delenv(name)


def test_the_caches_of_kernels_are_bounded_unless_the_user_says_otherwise(unset, monkeypatch):
    monkeypatch.setenv(CACHES[0], "7")
    bound_kernel_caches()
    assert [os.environ[name] for name in CACHES] == ["7", str(KERNELS)]


def test_the_bound_is_the_documented_one():
    documented = re.search(r"bounds both at (\d+)", (ROOT / "docs" / "training.md").read_text(encoding="utf-8"))
    assert documented is not None
    assert int(documented[1]) == KERNELS < 1024  # what both keep by themselves


def held(*words: str, environment: dict[str, str]) -> list[float]:
    """Train RNNsearch for some steps in a fresh process; return what it held at each tenth of the way, in MB."""
    script = f"import sys; sys.path.insert(0, {str(BENCHMARK.parent)!r}); import memory, json; "
    script += "print(json.dumps([mark['held'] for mark in memory.measure('rnnsearch', 40)['marks']]))"
    clean = {name: value for name, value in os.environ.items() if name not in CACHES}
    run = [sys.executable, *words, "-c", script]
    done = subprocess.run(run, capture_output=True, text=True, check=True, env={**clean, **environment}, timeout=300)
    return [float(number) for number in done.stdout.splitlines()[-1].strip("[]").split(",")]


@pytest.mark.skipif(sys.platform != "linux", reason="asks the C library of Linux")
def test_batches_of_new_lengths_leave_nothing_behind():
    marks = held(environment={})
    assert max(marks[2:]) - min(marks[2:]) < 12


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="asks the C library of Linux")
def test_the_measure_sees_what_is_kept_without_a_bound():
    marks = held(environment=dict.fromkeys(CACHES, "1024"))
    if max(marks[2:]) - min(marks[2:]) < 12:
        pytest.skip("this processor's products do not go through oneDNN")
