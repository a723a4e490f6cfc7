"""Compile a plain function with numba where it is installed, and run it as it stands where it is not."""

import contextlib
import ctypes
import functools
import hashlib
import inspect
import mmap
import re
from collections.abc import Callable, Collection
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from orrery.settings import cache_folder

HAVE_NUMBA = find_spec("numba") is not None

# The sums of a dot product may be taken in any order and fused; infinities and NaN keep their meaning.
FAST_SUMS = {"reassoc", "contract", "nsz", "arcp"}

# One part of the compiler's library in the list of what the process has in memory.
_COMPILER_MAP = re.compile(
    r"^(?P<start>[0-9a-f]+)-(?P<end>[0-9a-f]+) r-[-x]p .*libllvmlite.*\n"
    r"(?:.*\n)*?Anonymous: +(?P<anonymous>\d+) kB\n(?:.*\n)*?Swap: +(?P<swap>\d+) kB\n",
    re.MULTILINE,
)

P = ParamSpec("P")
T = TypeVar("T")


@functools.lru_cache(maxsize=1)
def has_openmp() -> bool:
    """Return whether numba is here with its OpenMP layer: of its layers the only one that several threads may enter."""
    numba = find_spec("numba")
    return numba is not None and any((Path(str(numba.origin)).parent / "np" / "ufunc").glob("omppool*"))


def in_parallel(function: Callable[P, T]) -> Callable[P, T]:
    """Return ``function`` compiled, its ``prange`` loops on as many threads as numba is set to; only `has_openmp`."""
    import numba

    options: Any = numba.config
    options.THREADING_LAYER = "omp"
    return compiled(function, (), parallel=True)


def set_threads(count: int) -> None:
    """Have what this thread calls in parallel computed by so many threads, or as many as numba has.

    Torch's own number stays: numba's threads, as they start, set that of OpenMP to all cores, and torch obeys it too.
    """
    import numba
    import torch

    options: Any = numba.config
    before = torch.get_num_threads()
    numba.set_num_threads(max(1, min(count, options.NUMBA_NUM_THREADS)))
    if torch.get_num_threads() != before:
        torch.set_num_threads(before)


def compiled(function: Callable[P, T], sums: Collection[str] = FAST_SUMS, *, parallel: bool = False) -> Callable[P, T]:
    """Return ``function`` compiled, without the interpreter's lock; or itself, slow, where numba is missing.

    ``sums`` are the liberties that the compiler may take with floats. Decorators that check types are taken off first.
    The machine code is kept in the user's cache folder, so it is made once for each type of argument and each state of
    the sources. Integers wrap around in both forms: the random streams count on it.
    """
    if HAVE_NUMBA:
        import numba

        options: Any = numba.config
        own = inspect.unwrap(function)
        compiler = numba.njit(nogil=True, parallel=parallel, fastmath=set(sums))(own)
        before = options.CACHE_DIR
        options.CACHE_DIR = before or str(cache_folder() / "numba" / _state(Path(own.__code__.co_filename).parent))
        with contextlib.suppress(RuntimeError):  # no folder can be written: compiled again in each process
            compiler.enable_caching()
        options.CACHE_DIR = before
        result: Callable[P, T] = compiler
        return result

    @functools.wraps(function)
    def plain(*arguments: Any, **named: Any) -> T:
        with np.errstate(over="ignore"):
            return function(*arguments, **named)

    return plain


@functools.lru_cache(maxsize=32)
def _state(folder: Path) -> str:
    """Return a digest of the sources of a folder and of this one: numba looks at the file of a function alone.

    A function that it calls, or whose instructions it takes from another file, may have changed.
    """
    digest = hashlib.sha256()
    for source in (*sorted(folder.glob("*.py")), *sorted(Path(__file__).parent.glob("*.py"))):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def exactly_compiled(function: Callable[P, T]) -> Callable[P, T]:
    """Return ``function`` compiled as `compiled` does, every float rounded as it is written."""
    return compiled(function, ())


def release_compiler() -> None:
    """Give the memory of the compiler's own code back to the system: 65 MB that finished functions do not need.

    The pages stay in the system's cache and return when something is compiled. Only Linux shows where they are.
    """
    maps = Path("/proc/self/smaps")
    if not maps.exists():
        return
    forget = ctypes.CDLL(None).madvise
    forget.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for match in _COMPILER_MAP.finditer(maps.read_text()):
        # Where nothing can be written and no page, in memory or swapped out, differs from its file, none is lost.
        if int(match["anonymous"]) == int(match["swap"]) == 0:
            start, end = (int(match[name], 16) for name in ("start", "end"))
            forget(start, end - start, mmap.MADV_DONTNEED)
