"""Compiling the step and the products, or loading them where that was done: ``python -m orrery.kernels.step.build``."""

import contextlib
import os
from functools import partial
from pickle import UnpicklingError
from typing import Any

import numba

from orrery.errors import MachineError
from orrery.kernels.blocks import compile_blocks
from orrery.kernels.quantised import compile_product
from orrery.kernels.readiness import BUILDING, READY, machine_code_folder
from orrery.kernels.step.entries import compiled_entries
from orrery.kernels.step.run import run

LOCK = "lock"
"""The file that the program which compiles holds."""


def build() -> Any:
    """Return the compiled step; the first time in a program this takes a moment, the first time at all some seconds.

    Raises:
        MachineError: there is no room for machine code.
    """
    # Machine code is linked with the threads' functions as it is loaded. numba starts the threads itself, but not for a
    # caller of a parallel function that another process compiled: where a build was cut short, calls would go nowhere.
    numba.get_num_threads()
    with _one_at_a_time():
        try:
            entries = _compiled()
        except (OSError, EOFError, UnpicklingError):  # what was kept cannot be read, or there is no room for more
            for kept in machine_code_folder().glob("*/*.nb?"):
                kept.unlink(missing_ok=True)
            entries = _compiled_anew()
    with contextlib.suppress(OSError):  # where nothing can be kept, each program compiles again
        (machine_code_folder() / READY).touch()
        (machine_code_folder() / BUILDING).unlink(missing_ok=True)
    return partial(_run, entries)


def _compiled() -> Any:
    """Compile or load, and return the addresses of the functions of vectors."""
    entries, integer = compiled_entries(), numba.int64
    rows, block, reals = numba.int64[:, ::1], numba.int64[:, :, ::1], numba.float64[:, ::1]
    run.compile((rows, reals, rows, rows, block, rows, numba.int64[::1], *[integer] * 4, numba.int64[::1]))
    return entries


def _compiled_anew() -> Any:
    try:
        return _compiled()
    except OSError as error:
        message = f"{machine_code_folder()}: machine code cannot be kept there: {error.strerror}"
        raise MachineError(message, "make room there, or have steps computed eagerly (kernel eager)") from error


def _one_at_a_time() -> contextlib.AbstractContextManager[Any]:
    """Wait until no other program compiles, and hold that until the end: numba's files are not made for two at once.

    Where the system has no such lock, or nothing can be kept, each compiles for itself.
    """
    try:
        import fcntl  # not on Windows

        machine_code_folder().mkdir(parents=True, exist_ok=True)
        file = (machine_code_folder() / LOCK).open("w")
        fcntl.flock(file, fcntl.LOCK_EX)  # the system's: it goes with a program that is killed
    except (ImportError, OSError):
        return contextlib.nullcontext()
    return file


def _run(entries: Any, *arguments: Any) -> None:
    run(*arguments, entries)


if __name__ == "__main__":
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)
    compile_blocks()
    compile_product()  # first: the mark that all is ready comes with the step
    build()
