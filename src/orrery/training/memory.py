"""Memory: what a run uses, and what it would need when there is not enough."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from orrery.errors import RunError

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
        weights, states = weight_bytes(model), STATES[optimizer_kind]
        parts = f"weights {weights / 1e9:.2f} GB, gradients {weights / 1e9:.2f} GB"
        parts += f", optimizer {states * weights / 1e9:.2f} GB, the rest activations"
        hint = "lower training.micro_batch (same result), batches.length or the model's size"
        raise RunError(f"out of memory ({parts})", hint) from error
