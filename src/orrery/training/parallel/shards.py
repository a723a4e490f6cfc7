"""Tensors of which each process has a part (torch's DTensor); its module is imported only where there are some."""

import sys
from typing import Any

from torch import Tensor


def shared(tensor: Any) -> bool:
    """Say whether processes share a tensor, so that this one has a part of it."""
    module = sys.modules.get("torch.distributed.tensor")  # without it there is none, and to import it takes a second
    return module is not None and isinstance(tensor, module.DTensor)


def own_part(tensor: Any) -> Tensor:
    """Return the part of a tensor that this process has: all of one that is not shared. The memory is the same."""
    part: Tensor = tensor.to_local() if shared(tensor) else tensor
    return part


def whole(tensor: Any) -> Tensor:
    """Return a tensor with the parts of all processes, which must all ask for it."""
    gathered: Tensor = tensor.full_tensor() if shared(tensor) else tensor
    return gathered


def like(tensor: Tensor, pattern: Any) -> Tensor:
    """Return a tensor, which every process has whole, shared as another one of its shape is; nothing is sent."""
    if not shared(pattern) or tensor.shape != pattern.shape:
        return tensor.to(pattern.device)
    from torch.distributed.tensor import DTensor, Replicate

    mesh = pattern.device_mesh
    everywhere = DTensor.from_local(tensor.to(pattern.device), mesh, [Replicate()] * mesh.ndim, run_check=False)
    cut: DTensor = everywhere.redistribute(placements=pattern.placements)
    # A part of its own: as a view it would keep the whole in memory.
    kept = cut.to_local().clone()
    return DTensor.from_local(
        kept, mesh, pattern.placements, run_check=False, shape=pattern.shape, stride=pattern.stride()
    )


def first_row(tensor: Any) -> int | None:
    """Return the first row of the part that this process has of a tensor; None where another process has the same.

    Of copies the first counts. Rows are cut as ``torch.chunk`` does: all parts have as many, but for the last ones.
    """
    row, step = 0, len(tensor)
    for axis, placement in enumerate(tensor.placements):
        number, count = tensor.device_mesh.get_local_rank(axis), tensor.device_mesh.size(axis)
        if not placement.is_shard():
            if number:
                return None
            continue
        step = -(-step // count)
        row = min(number * step, len(tensor))
    return row


def held_bytes(tensor: Any) -> int:
    """Return the bytes of a tensor in this process."""
    part = own_part(tensor)
    return part.numel() * part.element_size()
