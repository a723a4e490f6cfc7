"""Zeros of which only the part that is written takes memory and time."""

import mmap
import sys
from math import prod

import torch
from torch import Tensor

LARGE = 2**22
"""Bytes from which on the system is asked for pages of zeros; below, writing zeros is faster."""

_PRIVATE = {} if sys.platform == "win32" else {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS}


def blank(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Return zeros of a shape, with the dtype and device of a tensor.

    On a CPU the system gives pages of zeros at the first touch, so slots that no token reaches cost nothing: a long
    row beside seven short ones takes the memory of its own tokens, and the short ones do not wait for zeros.
    """
    size = prod(shape) * like.element_size()
    if type(like) is not Tensor or like.device.type != "cpu" or size < LARGE:
        return like.new_zeros(shape)
    try:
        pages = mmap.mmap(-1, size, **_PRIVATE)
    except OSError:  # torch says what is missing
        return like.new_zeros(shape)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        pages.madvise(mmap.MADV_NOHUGEPAGE)  # a huge page would be zeroed whole for one token
    return torch.frombuffer(pages, dtype=like.dtype).view(shape)
