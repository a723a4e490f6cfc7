"""What this machine does in a second, measured: products of matrices and reads of memory; all is timed in one way."""

from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import Any

import torch
import torch.nn.functional as F

SIDES = {"cpu": 1024, "cuda": 8192}
"""Of the square matrices whose product is timed: a GPU is done with small ones before the next is asked for."""
PROBE = 2**28
"""Numbers of the array whose sum measures the memory: a gibibyte in float32, beyond every cache."""


def timings(
    run: Callable[[], Any],
    *,
    least: int = 1,
    seconds: float = 0.0,
    calls: int = 1,
    clock: Callable[[], float] | None = None,
) -> list[float]:
    """Return the seconds of a call, timed again and again.

    Args:
        run: what is timed.
        least: timings that are taken at least.
        seconds: that all timings take together at least.
        calls: that are timed as one, so that a short one is longer than the clock's step.
        clock: by default the wall's.
    """
    clock, taken, spent = perf_counter if clock is None else clock, list[float](), 0.0
    while spent < seconds or len(taken) < least:
        began = clock()
        for _ in range(calls):
            run()
        spent += (own := clock() - began)
        taken.append(own / calls)
    return taken


def matmul_rate(dtype: torch.dtype, device: str = "cpu", size: int | None = None, seconds: float = 0.2) -> float:
    """Measure the operations per second of a square product in ``dtype``: the best within ``seconds``."""
    size = size or SIDES.get(device, SIDES["cpu"])
    a, b = (torch.ones(size, size, dtype=dtype, device=device) for _ in range(2))
    return 2 * size**3 / min(timings(lambda: (a @ b)[0, 0].item(), seconds=seconds))


@torch.no_grad()
def product_rate(dtype: torch.dtype, rows: int, inputs: int, outputs: int, seconds: float = 0.5) -> float:
    """Measure the GFLOP/s of ``F.linear`` at a shape on the CPU: the median of three or more within ``seconds``."""
    x, weight = torch.randn(rows, inputs, dtype=dtype), torch.randn(outputs, inputs, dtype=dtype)
    F.linear(x, weight)
    return 2e-9 * rows * inputs * outputs / median(timings(lambda: F.linear(x, weight), least=3, seconds=seconds))


class BandwidthProbe:
    """A probe of the memory: each call reads an array once, in gigabytes a second."""

    def __init__(self, numbers: int | None = None) -> None:
        self.array = torch.ones(numbers or PROBE)

    def __call__(self) -> float:
        """Return the rate of one pass."""
        return self.array.nbytes / timings(self.array.sum)[0] / 1e9
