"""Torch's recurrent engines in narrow formats, on any processor."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

_SWITCH = threading.RLock()


@contextmanager
def narrow_formats(x: Tensor) -> Iterator[None]:
    """Let an engine pass by oneDNN where its format is one that oneDNN cannot compute on this processor.

    Without AVX-512, oneDNN has no LSTM in bfloat16 and float16, and torch raises in the place of using its own.
    """
    dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else x.dtype
    if x.device.type != "cpu" or _computes(dtype):
        yield
        return
    onednn: Any = torch.backends.mkldnn
    with _SWITCH:  # one for the whole process: two threads that pass here must not take each other's setting back
        before, onednn.enabled = onednn.enabled, False  # its own context manager sets more, and warns of that
        try:
            yield
        finally:
            onednn.enabled = before


def _computes(dtype: torch.dtype) -> bool:
    """Say whether oneDNN computes a format here."""
    if dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    if dtype == torch.float16:
        return bool(torch.ops.mkldnn._is_mkldnn_fp16_supported())
    return True
