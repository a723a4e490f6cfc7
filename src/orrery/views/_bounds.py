"""How far two ways to one number may be apart."""

import torch


def bound(dtype: torch.dtype) -> float:
    """Return 1e-5, or four units in the last place where a 16-bit format is coarser than that."""
    return max(1e-5, 4 * torch.finfo(dtype).eps)
