"""Whether a step is rehearsed: run on tensors that have shapes and formats, but no numbers, to see what it costs.

What depends on numbers asks here, and takes the usual case: rows without padding, experts that receive equally many.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache, wraps
from typing import ParamSpec

from torch import Tensor

_P = ParamSpec("_P")
_REHEARSING: ContextVar[bool] = ContextVar("rehearsing", default=False)


def rehearsing() -> bool:
    """Return whether tensors have no numbers now."""
    return _REHEARSING.get()


@contextmanager
def rehearsal() -> Iterator[None]:
    """Say to everything inside that tensors have no numbers."""
    token = _REHEARSING.set(True)
    try:
        yield
    finally:
        _REHEARSING.reset(token)


def kept(size: int) -> Callable[[Callable[_P, Tensor]], Callable[_P, Tensor]]:
    """Keep the last ``size`` tables that a function made; those of a rehearsal, which are empty, are not kept."""

    def decorate(make: Callable[_P, Tensor]) -> Callable[_P, Tensor]:
        remembered = lru_cache(maxsize=size)(make)

        @wraps(make)
        def table(*args: _P.args, **kwargs: _P.kwargs) -> Tensor:
            if rehearsing():
                return make(*args, **kwargs)
            return remembered(*args, **kwargs)  # type: ignore[arg-type]

        return table

    return decorate
