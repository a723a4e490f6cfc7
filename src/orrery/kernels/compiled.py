"""Compile a plain function with numba where it is installed, and run it as it stands where it is not."""

import functools
import inspect
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, ParamSpec, TypeVar

import numpy as np

HAVE_NUMBA = find_spec("numba") is not None

# The sums of a dot product may be taken in any order and fused; infinities and NaN keep their meaning.
FAST_SUMS = {"reassoc", "contract", "nsz", "arcp"}


P = ParamSpec("P")
T = TypeVar("T")


def compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Return ``function`` compiled, without the interpreter's lock; or itself, slow, where numba is missing.

    Decorators that check types are taken off first. The machine code is kept in numba's cache folder, so it is
    made once for each type of argument. Integers wrap around in both forms: the random streams count on it.
    """
    if HAVE_NUMBA:
        import numba

        result: Callable[P, T] = numba.njit(nogil=True, cache=True, fastmath=FAST_SUMS)(inspect.unwrap(function))
        return result

    @functools.wraps(function)
    def plain(*arguments: Any, **named: Any) -> T:
        with np.errstate(over="ignore"):
            return function(*arguments, **named)

    return plain
