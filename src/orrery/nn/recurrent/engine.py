"""Torch's recurrent engines in every format, on any processor and on a GPU."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

_SWITCH = threading.RLock()


@contextmanager
def fitting(engine: nn.Module, x: Tensor) -> Iterator[None]:
    """Let an engine pass by a library that cannot compute what is asked, or would compute something else.

    Without AVX-512, oneDNN has no LSTM in bfloat16 and float16, and torch raises in the place of using its own. cuDNN
    gives gradients in training mode alone, and rounds the factors of float32 products to ten bits.
    """
    switches = list(_switches(engine, x))
    if not switches:
        yield
        return
    with _SWITCH:  # one for the whole process: two threads that pass here must not take each other's setting back
        before = [getattr(library, name) for library, name in switches]
        try:
            for library, name in switches:
                setattr(library, name, False)  # torch's own context managers set more, and warn of that
            yield
        finally:
            for (library, name), value in zip(switches, before, strict=True):
                setattr(library, name, value)


def _switches(engine: nn.Module, x: Tensor) -> Iterator[tuple[Any, str]]:
    """Yield what is to be off meanwhile: the library, and the name of its switch."""
    if x.device.type == "cpu":
        dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
        if not computes(dtype):
            yield torch.backends.mkldnn, "enabled"
    elif x.device.type == "cuda":
        yield torch.backends.cudnn, "allow_tf32"
        if torch.is_grad_enabled() and not engine.training:
            yield torch.backends.cudnn, "enabled"


def computes(dtype: torch.dtype) -> bool:
    """Say whether oneDNN computes an LSTM in a format here."""
    if dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    if dtype == torch.float16:
        return bool(torch.ops.mkldnn._is_mkldnn_fp16_supported())
    return True
