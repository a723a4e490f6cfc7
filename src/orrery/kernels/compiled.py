"""Compile a plain function with numba where it is installed, and run it as it stands where it is not."""

import contextlib
import functools
import inspect
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, ParamSpec, TypeVar

import numpy as np

from orrery.settings import cache_folder

HAVE_NUMBA = find_spec("numba") is not None

# The sums of a dot product may be taken in any order and fused; infinities and NaN keep their meaning.
FAST_SUMS = {"reassoc", "contract", "nsz", "arcp"}


P = ParamSpec("P")
T = TypeVar("T")


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Return ``function`` compiled, without the interpreter's lock; or itself, slow, where numba is missing.

    Decorators that check types are taken off first. The machine code is kept in the user's cache folder, so it is
    made once for each type of argument. Integers wrap around in both forms: the random streams count on it.
    """
    if HAVE_NUMBA:
        import numba

        options: Any = numba.config
        options.CACHE_DIR = options.CACHE_DIR or str(cache_folder() / "numba")
        compiler = numba.njit(nogil=True, fastmath=FAST_SUMS)(inspect.unwrap(function))
        with contextlib.suppress(RuntimeError):  # no folder can be written: compiled anew in each process
            compiler.enable_caching()
        result: Callable[P, T] = compiler
        return result

    @functools.wraps(function)
    def plain(*arguments: Any, **named: Any) -> T:
        with np.errstate(over="ignore"):
            return function(*arguments, **named)

    return plain
