"""Tensors of which each process has a part (torch's DTensor); its module is imported only where there are some."""

import sys
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

OWNERS = "owners"
"""The one axis of a mesh of the processes that alone have a tensor, each of them whole; others have nothing of it."""


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
    if not owned(tensor):
        return gathered
    if not takes_part(tensor.device_mesh):
        gathered = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    torch.distributed.broadcast(gathered, src=int(tensor.device_mesh.mesh[0]))
    return gathered


def owned(tensor: Any) -> bool:
    """Say whether some processes alone have a tensor."""
    return shared(tensor) and tensor.device_mesh.mesh_dim_names == (OWNERS,)


def holders(tensor: Any) -> tuple[int, ...]:
    """Return the numbers of the processes that share a tensor; none of one that each has for itself."""
    return tuple(tensor.device_mesh.mesh.flatten().tolist()) if shared(tensor) else ()


def takes_part(mesh: Any) -> bool:
    """Say whether this process is one of a mesh."""
    return mesh.get_coordinate() is not None


def like(tensor: Tensor, pattern: Any) -> Tensor:
    """Return a tensor, which every process has whole, shared as another one of its shape is; nothing is sent."""
    if not shared(pattern) or tensor.shape != pattern.shape:
        return tensor.to(pattern.device)
    return cut(tensor.to(pattern.device), pattern.device_mesh, pattern.placements)


def cut(tensor: Tensor, mesh: Any, placements: Any) -> Tensor:
    """Return a tensor, which every process has whole, shared among the processes of a mesh; nothing is sent.

    A process that is none of them keeps nothing.
    """
    from torch.distributed.tensor import DTensor

    # A part of its own: as a view it would keep the whole in memory.
    there = takes_part(mesh)
    kept = tensor[part_of(tensor.shape, mesh, placements)].contiguous().clone() if there else tensor.new_empty(0)
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
    if owned(tensor):
        return bool(mesh.mesh[0] == torch.distributed.get_rank())
    copied = [number for number, placement in enumerate(tensor.placements) if placement.is_replicate()]
    return bool((mesh.mesh == 0).any()) and not any(mesh.get_local_rank(number) for number in copied)


def held_bytes(tensor: Any) -> int:
    """Return the bytes of a tensor in this process."""
    part = own_part(tensor)
    return part.numel() * part.element_size()
