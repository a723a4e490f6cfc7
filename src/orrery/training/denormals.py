"""Numbers below the least normal one count as zero while a model learns: many processors compute with them slowly."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

LEAST = 1e-40
"""A float32 below the least normal one, 1.2e-38."""


@contextmanager
def denormals_as_zero() -> Iterator[None]:
    """Compute without denormal numbers; afterwards all is as it was before.

    The probability of a token that a model all but excludes is such a number, and so are the gradients that come of it.
    Products with them take a processor of Intel's up to a hundred times as long: a small GPT-2 that had learnt its rows
    by heart took 0.25 s for a step with them as zeros, and 5.7 s without. The setting belongs to a thread, and the
    threads that it starts have it too. Where a processor has no such setting, nothing changes.
    """
    before = are_zero()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def are_zero() -> bool:
    """Say whether denormal numbers count as zero in this thread."""
    return bool((torch.tensor([LEAST]) * 1).sum() == 0)
