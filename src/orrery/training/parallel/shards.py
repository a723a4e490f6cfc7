"""Tensors of which each process has a part (torch's DTensor); its module is imported only where there are some."""

import sys
from collections.abc import Sequence
from typing import Any

import torch
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
    if not shared(tensor):
        return tensor
    from torch.distributed.tensor import Replicate

    placements = list(tensor.placements)
    for number in range(len(placements)):  # an axis at a time: torch warns of several at once
        placements[number] = Replicate()
        tensor = tensor.redistribute(placements=placements)
    gathered: Tensor = tensor.full_tensor()
    return gathered


def like(tensor: Tensor, pattern: Any) -> Tensor:
    """Return a tensor, which every process has whole, shared as another one of its shape is; nothing is sent."""
    if not shared(pattern) or tensor.shape != pattern.shape:
        return tensor.to(pattern.device)
    return cut(tensor.to(pattern.device), pattern.device_mesh, pattern.placements)


def cut(tensor: Tensor, mesh: Any, placements: Any) -> Tensor:
    """Return a tensor, which every process has whole, shared among the processes of a mesh; nothing is sent."""
    from torch.distributed.tensor import DTensor

    # A part of its own: as a view it would keep the whole in memory.
    kept = tensor[part_of(tensor.shape, mesh, placements)].contiguous().clone()
    shape, stride = tensor.shape, torch.empty(tensor.shape, device="meta").stride()
    return DTensor.from_local(kept, mesh, placements, run_check=False, shape=shape, stride=stride)


def part_of(shape: Sequence[int], mesh: Any, placements: Any) -> tuple[slice, ...]:
    """Return which places along each axis this process has of a tensor that is shared.

    An axis is cut as ``torch.chunk`` does: all parts have as many places, but for the last ones. One that several
    degrees cut is cut by the last of the mesh first, as tensor parallelism comes before the sharing of weights.
    """
    places = [(0, count) for count in shape]
    for number, placement in reversed([*enumerate(placements)]):
        if not placement.is_replicate():
            first, end = places[placement.dim]
            step = -(-(end - first) // mesh.size(number))
            own = min(first + mesh.get_local_rank(number) * step, end)
            places[placement.dim] = own, min(own + step, end)
    return tuple(slice(first, end) for first, end in places)


def is_first(tensor: Any) -> bool:
    """Say whether this process is the first of those that have its part of a tensor.

    Of the groups of processes that share a tensor, each with all of its parts, that of process 0 is the first.
    """
    mesh = tensor.device_mesh
    copied = [number for number, placement in enumerate(tensor.placements) if placement.is_replicate()]
    return bool((mesh.mesh == 0).any()) and not any(mesh.get_local_rank(number) for number in copied)


def held_bytes(tensor: Any) -> int:
    """Return the bytes of a tensor in this process."""
    part = own_part(tensor)
    return part.numel() * part.element_size()
