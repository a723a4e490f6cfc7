"""What this machine can do at most: bytes read a second, products a second, and which instructions it has."""

import os
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from orrery.kernels.processor import this_processor
from orrery.studies.kept import Say
from orrery.training.machine_rates import BandwidthProbe, product_rate

SHAPES = ((512, 1024, 4096), (512, 4096, 1024), (2048, 2048, 2048))
"""Rows, inputs and outputs of the products: two of a layer, and a large square."""

_DECISIVE = (
    "avx2",
    "avx512f",
    "avx512_bf16",
    "avx512_vnni",
    "amx_tile",
    "amx_bf16",
    "amx_int8",
    "asimd",
    "bf16",
    "sve",
)


@dataclass(frozen=True)
class MachineLimits:
    """The limits of this machine, measured.

    Attributes:
        processor: its maker, as the system names it.
        features: the instruction sets that decide which kernels run.
        threads: of torch.
        load: processes that ran or waited when the measuring began, on average over a minute.
        read: gigabytes a second that all threads read from memory: the median, and the best.
        products: the best GFLOP/s of matrix products by dtype.
    """

    processor: str
    features: tuple[str, ...]
    threads: int
    load: float
    read: tuple[float, float]
    products: dict[str, float]

    def state(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)

    def notes(self) -> list[str]:
        """Return what a reader of the numbers must know."""
        sentences = [f"{self.processor}, {self.threads} threads; {', '.join(self.features) or 'no known features'}"]
        busy = self.load / (os.cpu_count() or 1)
        if busy > 0.2:
            sentences.append(f"the machine was busy (load {self.load:.1f}): trust ratios of one round, not the numbers")
        if self.read[1] > 1.25 * self.read[0]:
            sentences.append(f"memory was shared: reads vary from {self.read[0]:.0f} to {self.read[1]:.0f} GB/s")
        return sentences


def measure_machine(say: Say = lambda line: None) -> MachineLimits:
    """Measure the limits in about ten seconds."""
    load = os.getloadavg()[0]
    processor = this_processor()
    say("how fast memory is read")
    read = BandwidthProbe()
    rates = [read() for _ in range(7)]
    products = {}
    for dtype in (torch.float32, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        say(f"how fast {name} matrices are multiplied")
        products[name] = max(product_rate(dtype, *shape) for shape in SHAPES)
    features = tuple(name for name in _DECISIVE if name in processor.flags)
    best = (statistics.median(rates), max(rates))
    return MachineLimits(
        processor.vendor or "unknown processor", features, torch.get_num_threads(), load, best, products
    )


def rows_of(machine: MachineLimits) -> Sequence[Sequence[str]]:
    """Return the limits as rows of a table: what, how much, and what it bounds."""
    read, best = machine.read
    rows = [["memory read", f"{read:.1f} GB/s (best {best:.1f})", "decoding: weight bytes a token over this"]]
    for name, rate in machine.products.items():
        rows.append([f"{name} products", f"{rate:,.0f} GFLOP/s", "training, and reading prompts"])
    return rows
