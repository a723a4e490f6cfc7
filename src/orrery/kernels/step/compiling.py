"""How the functions of a step are compiled, and where their machine code is kept."""

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numba

from orrery.kernels.readiness import machine_code_folder

config: Any = numba.config
config.THREADING_LAYER = "omp"  # the only one that several threads may enter; workqueue ends the process then

prange = numba.prange


@contextlib.contextmanager
def machine_code_kept() -> Iterator[None]:
    """Let what is compiled meanwhile be kept in the folder of this step."""
    before, config.CACHE_DIR = config.CACHE_DIR, str(machine_code_folder())
    try:
        with contextlib.suppress(RuntimeError):  # no folder can be written: compiled again in each process
            yield
    finally:
        config.CACHE_DIR = before


def compiled_step(*, parallel: bool = False) -> Callable[[Callable[..., Any]], Any]:
    """Return what compiles a function, without the interpreter's lock, every float rounded as it is written."""

    def decorate(function: Callable[..., Any]) -> Any:
        compiler = numba.njit(nogil=True, parallel=parallel, error_model="numpy")(inspect.unwrap(function))
        with machine_code_kept():
            compiler.enable_caching()
        return compiler

    return decorate


def compiled_entry(signature: Any, function: Callable[..., Any]) -> Any:
    """Return a function compiled for other compiled ones, who call its ``address``."""
    with machine_code_kept():
        return numba.cfunc(signature, cache=True)(inspect.unwrap(function))
    return numba.cfunc(signature)(inspect.unwrap(function))
