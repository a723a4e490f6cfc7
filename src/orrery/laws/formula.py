"""Numbers as a pure function of a name and an index: weights and inputs that any program can make again."""

from collections.abc import Sequence
from hashlib import sha256
from math import prod

import numpy as np
import torch
from torch import Tensor


def numbers(name: str, shape: Sequence[int]) -> Tensor:
    """Return float64 numbers between -0.5 and 0.5, the same in every version of every library.

    ``number_i = u_i - 1/2``, with u_i the upper 53 bits of SplitMix64's i-th output (Steele et al. 2014, figure 17) and
    the first eight bytes of the name's SHA-256 as its seed.
    """
    seed = np.uint64(int.from_bytes(sha256(name.encode()).digest()[:8], "little"))
    with np.errstate(over="ignore"):
        z = seed + np.arange(1, prod(shape) + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    fractions = (z >> np.uint64(11)).astype(np.float64) * 2.0**-53
    return torch.from_numpy(fractions - 0.5).reshape(tuple(shape))


def whole_numbers(name: str, shape: Sequence[int], low: int, high: int) -> Tensor:
    """Return whole numbers from ``low`` up to ``high``, which is not among them."""
    return (low + (numbers(name, shape) + 0.5) * (high - low)).long()
