"""A real step of training in a process of its own: the memory that it fills, and the seconds that it takes."""

import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import torch

from orrery.errors import RunError
from orrery.planning.whole_step import WholeStep
from orrery.training.denormals import denormals_as_zero
from orrery.training.memory import peak_gigabytes
from orrery.training.precision import Precision

PROGRAM = "from orrery.planning.measured_step import child; child()"
RESIDENT = Path("/proc/self/statm")
SHORT = 8
"""Tokens of the step that loads the kernels."""
HIGHEST = Path("/proc/self/clear_refs")
APART = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}
"""Makes the C library of Linux map each tensor of 64 kilobytes or more apart."""


@dataclass(frozen=True)
class MeasuredStep:
    """What steps took.

    Attributes:
        peak: bytes by which a process grew at most, from the loaded libraries to the last step, whose allocator gives
            each tensor pages of its own.
        process: bytes of an ordinary process, its libraries and the gaps between its tensors among them.
        seconds: of a step, the median of all but the first.
    """

    peak: int
    process: int
    seconds: float


def measure(step: WholeStep, steps: int = 5) -> MeasuredStep:
    """Take steps in two fresh processes and return what they took.

    Memory of tensors is the growth in physical pages since a step on a few tokens, which loads the kernels. The
    allocator of the C library keeps gaps between tensors that it cannot give back, a tenth to two fifths in small
    trainings; so a process whose allocator maps each tensor apart tells what tensors hold, and an ordinary one,
    libraries and all, what a training takes from the machine. The ordinary one is timed. With one thread seconds are
    the processor's own, which neighbours on the machine disturb least; with several they are the clock's.

    Raises:
        RunError: a process ended before the steps were taken.
    """
    few = replace(step, rows=1, length=min(SHORT, step.length))
    apart = _run(few, step, 2, os.environ | APART)
    usual = _run(_small(step.precision), step, steps, dict(os.environ))
    return MeasuredStep(int(apart["peak"]), int(usual["libraries"] + usual["peak"]), usual["seconds"])


def libraries_bytes(precision: Precision) -> int:
    """Return the bytes of a process that has loaded what steps load, and holds no model.

    Raises:
        RunError: it ended before.
    """
    small = _small(precision)
    return int(_run(small, small, 1, dict(os.environ))["libraries"])


def _run(first: WholeStep, step: WholeStep, steps: int, environment: Mapping[str, str]) -> dict[str, int | float]:
    """Take steps in a fresh process, after a first one that loads what steps load."""
    command = [sys.executable, "-c", PROGRAM, str(steps)]
    given = pickle.dumps((first, step))
    done = subprocess.run(command, input=given, capture_output=True, check=False, env=environment)
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["nothing was said"]
        message = f"the measured step ended with {done.returncode}: {last[0]}"
        raise RunError(message, "it may lack memory: lower --rows or --length")
    measures: dict[str, int | float] = json.loads(done.stdout.decode().splitlines()[-1])
    return measures


def child() -> None:
    """Take the steps that standard input describes, and print what they took."""
    first, step = pickle.load(sys.stdin.buffer)
    torch.set_num_threads(step.precision.threads)
    _warm(first)
    before = _resident()
    if HIGHEST.exists():
        HIGHEST.write_text("5")  # the highest mark of Linux begins at zero
    running, clock = step.begin(), clock_of(step.precision.threads)
    seconds = []
    with denormals_as_zero():  # as a training does
        running.take()
        for _ in range(int(sys.argv[1])):
            began = clock()
            running.take()
            seconds.append(clock() - began)
    peak = _highest() - before
    print(json.dumps({"libraries": before, "peak": peak, "seconds": median(seconds)}))


def clock_of(threads: int) -> Callable[[], float]:
    """Return the clock of steps: the processor's own for one thread, the wall's for several."""
    return time.process_time if threads == 1 else time.perf_counter


def _warm(step: WholeStep) -> None:
    """Load what steps load: the kernels, and the engine of gradients."""
    running = step.begin()
    running.take()
    running.take()


def _small(precision: Precision) -> WholeStep:
    from orrery.families import load_family

    rules = load_family("gpt2")
    return WholeStep(rules.spec(rules.TINY), 1, SHORT, "adamw", precision)


def _resident() -> int:
    if RESIDENT.exists():
        return int(RESIDENT.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return _highest()


def _highest() -> int:
    status = Path("/proc/self/status")
    if status.exists():
        line = next(one for one in status.read_text().splitlines() if one.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return round(peak_gigabytes("cpu") * 1e9)
