"""Where the models of the laws compute: on the CPU, or on a device that was named."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor

_NAMED = ContextVar("device", default="cpu")


def device() -> torch.device:
    """Return the device."""
    return torch.device(_NAMED.get())


def placed(x: Tensor) -> Tensor:
    """Return a tensor on the device; numbers are drawn on the CPU, so that they are the same everywhere."""
    return x.to(device())


@contextmanager
def on_device(name: str) -> Iterator[None]:
    """Let the laws compute on a device."""
    before = _NAMED.set(name)
    try:
        yield
    finally:
        _NAMED.reset(before)
