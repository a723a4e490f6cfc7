"""The memory that oneDNN's LSTM keeps beside its outputs for the backward pass, which tensors without numbers lack."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

ROWS = 64
"""Rows with which the kernel is asked: each of its tables is then a whole number of pages, and none is rounded."""


def workspace_bytes(shape: Sequence[int], hidden: int) -> int:
    """Return the bytes of a layer's workspace for ``shape``, tokens by rows by channels.

    Gates and states of every token: ``rows (a tokens + b)``. How far apart the kernel lays their rows is its own
    affair and depends on its version, so that ``a`` and ``b`` are read off two runs of it on one and on two tokens.
    Tables are whole pages: for few rows and tokens it keeps some kilobytes more.
    """
    tokens, rows, width = shape
    one, two = _asked(width, hidden)
    return rows * (one + (tokens - 1) * (two - one)) // ROWS


@lru_cache(maxsize=64)
def _asked(width: int, hidden: int) -> tuple[int, int]:
    with _disable_current_modes(), torch.enable_grad():
        return _of(1, width, hidden), _of(2, width, hidden)


def _of(tokens: int, width: int, hidden: int) -> int:
    x_LBD, state_BD = torch.zeros(tokens, ROWS, width), torch.zeros(ROWS, hidden)
    weights = [torch.zeros(4 * hidden, n) for n in (width, hidden)] + [torch.zeros(4 * hidden) for _ in range(2)]
    # Not reversed; no lengths of rows; LSTM is mode 2; one layer, biases, one direction, tokens first, training.
    settings: tuple[Any, ...] = (False, [], 2, hidden, 1, True, False, False, True)
    made = torch.ops.aten.mkldnn_rnn_layer(x_LBD, *weights, state_BD, state_BD, *settings)
    return int(made[3].nbytes)
