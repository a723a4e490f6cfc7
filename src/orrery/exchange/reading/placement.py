"""Where a model runs and in which numbers."""

from typing import Any

import torch
from torch import nn

from orrery.checkpoints.gguf_file import Kind
from orrery.errors import MachineError, UsageError

DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}


def choose_device(name: str = "auto") -> torch.device:
    """Return the device of a name; ``auto`` is the first GPU, else the CPU.

    Raises:
        UsageError: no such name, or one of a device that holds no numbers.
        MachineError: this machine has no such device.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        if "Expected one of" in str(error) or "Invalid device" in str(error):
            raise UsageError(f"no kind of device is called {name!r}", "use auto, cpu or cuda") from error
        raise MachineError(f"the device {name!r} cannot be used: {str(error).splitlines()[0]}", "use cpu") from error
    if device.type == "meta":
        raise UsageError("the device 'meta' has shapes and no numbers", "use auto, cpu or cuda")
    return device


def place(model: nn.Module, device: torch.device, dtype: str = "auto") -> None:
    """Bring a model to a device in a dtype.

    ``stored`` keeps what the file has. ``auto`` does too, except that 16-bit weights become float32 on a CPU, where
    the laws are exact in float32 and few processors compute faster in 16 bits. Whole numbers stay what they are.

    Raises:
        UsageError: no such dtype.
    """
    if dtype not in (*DTYPES, "auto", "stored"):
        raise UsageError(f"no dtype {dtype!r}", f"use auto, stored, {', '.join(DTYPES)}")
    if dtype in DTYPES:
        model.to(device, DTYPES[dtype])
        return
    halves = any(p.is_floating_point() and p.dtype.itemsize < 4 for p in model.parameters())
    model.to(device)
    if dtype == "auto" and device.type == "cpu" and halves:
        model.to(torch.float32)


def describe(model: nn.Module) -> str:
    """Return device and kinds of numbers in words: ``cpu, float32``, or ``cpu, Q4_K, Q6_K and float32``."""
    kinds: dict[int, str] = {}
    for module in model.modules():
        blocks: Any = getattr(module, "blocks", None)
        if isinstance(blocks, Kind):
            kinds[id(module.weight)] = blocks.name
    parameters = list(model.parameters())
    *others, last = sorted({kinds.get(id(p), str(p.dtype).removeprefix("torch.")) for p in parameters})
    return f"{parameters[0].device}, {' and '.join(part for part in (', '.join(others), last) if part)}"
