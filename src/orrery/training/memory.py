"""Memory: what a run uses, and what it would need when there is not enough."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import nn

from orrery.errors import RunError
from orrery.training.parallel.shards import held_bytes

MEMINFO, CONTAINER = Path("/proc/meminfo"), Path("/sys/fs/cgroup")
# Bytes kept per byte of a weight: the weight, its gradient and the optimizer's tensors.
STATES = {"sgd": 1, "adam": 2, "adamw": 2, "muon": 2}


def peak_gigabytes(device: str) -> float:
    """Return the most memory this process has held so far, on its device, in units of 1e9 bytes."""
    if device == "cuda":
        return torch.cuda.max_memory_allocated() / 1e9
    import resource  # not on Windows

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9


def weight_bytes(model: nn.Module) -> int:
    """Return the bytes of the model's parameters."""
    return sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())


def free_bytes(device: str = "cpu") -> int | None:
    """Return the bytes that can still be taken on a device, or nothing where the system does not say."""
    if device == "cuda":
        return int(torch.cuda.mem_get_info()[0])
    if not MEMINFO.exists():
        return None
    line = next(one for one in MEMINFO.read_text().splitlines() if one.startswith("MemAvailable"))
    machine, container = int(line.split()[1]) * 1024, _container_bytes()
    return machine if container is None else min(machine, container)


def _container_bytes() -> int | None:
    """Return the bytes that the process's container can still take (Linux's cgroup 2), or nothing without a limit.

    Pages of files are counted as taken there, but the system gives them back where memory is short.
    """
    files = [CONTAINER / f"memory.{name}" for name in ("max", "current", "stat")]
    if not all(file.exists() for file in files):
        return None
    most, taken, kinds = (file.read_text().split() for file in files)
    if most == ["max"]:
        return None
    of_files = sum(int(kinds[kinds.index(kind) + 1]) for kind in ("active_file", "inactive_file"))
    return int(most[0]) - int(taken[0]) + of_files


def learnt_bytes(model: nn.Module) -> int:
    """Return the bytes of what learns in this process: gradients take as many, and each of the optimizer's tensors."""
    return sum(held_bytes(one) for one in model.parameters() if one.requires_grad)


def refuse_too_large(model: nn.Module, optimizer_kind: str, device: str) -> None:
    """Refuse a training whose gradients and optimizer alone are more than there is memory, before its first step.

    Raises:
        RunError: they are.
    """
    free, needed = free_bytes(device), (1 + STATES[optimizer_kind]) * learnt_bytes(model)
    if free is not None and needed > free:
        lack = f"gradients and {optimizer_kind} need {needed / 1e9:.2f} GB, and {free / 1e9:.2f} GB are free"
        hint = "train a smaller model, an adapter (model.adapter), or a part of this one (model.freeze)"
        raise RunError(f"out of memory, seen before the first step: {lack}", hint)


@contextmanager
def memory_errors(model: nn.Module, optimizer_kind: str) -> Iterator[None]:
    """Turn an allocation that failed into ``RunError`` with an estimate and the settings that need less."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        text = str(error)
        lacking = "can't allocate memory" in text or "not enough memory" in text
        if not (lacking or isinstance(error, MemoryError | torch.OutOfMemoryError)):
            raise
        weights, learnt = sum(map(held_bytes, model.parameters())), learnt_bytes(model)
        parts = f"weights {weights / 1e9:.2f} GB, gradients {learnt / 1e9:.2f} GB"
        parts += f", optimizer {STATES[optimizer_kind] * learnt / 1e9:.2f} GB, the rest activations"
        hint = "lower training.micro_batch (same result), batches.length or the model's size"
        raise RunError(f"out of memory ({parts})", hint) from error
