"""Importing and loading without the garbage collector, so that the first token comes sooner."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Collect no garbage inside, and spare what is there at the end from every later collection.

    Modules and models live as long as the program. Collections that look at them for nothing while they come take a
    tenth of the time to the first token, and later each collection of all objects stops an answer for a tenth of a
    second.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
