"""The processes of a run as meshes: who computes together with whom, and who has what."""

from collections.abc import Mapping

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Replicate

from orrery.recipes.parallel import ParallelSettings
from orrery.training.distributed import Ranks
from orrery.training.parallel.shards import OWNERS, cut

AXES = ("pipeline", "data", "fsdp", "context", "tensor")
"""The degrees whose product is that of the processes, the slowest first."""


def with_copies(degrees: ParallelSettings, ranks: Ranks) -> ParallelSettings:
    """Return the degrees with as many copies of the model as there are."""
    return degrees.model_copy(update={"data": ranks.replicas // degrees.fsdp})


def processes(degrees: ParallelSettings) -> Tensor:
    """Return the numbers of all processes, an axis for each of `AXES`."""
    return torch.arange(dist.get_world_size()).view([getattr(degrees, name) for name in AXES])


def neighbours(device: str, degrees: ParallelSettings, name: str) -> DeviceMesh:
    """Return the mesh of the processes that differ from this one in one degree alone."""
    rows = processes(degrees).movedim(AXES.index(name), -1).flatten(0, -2)
    return DeviceMesh(device, rows, mesh_dim_names=("others", name))[name]


def sharded(device: str, degrees: ParallelSettings) -> DeviceMesh:
    """Return the mesh in which a unit of FSDP lies: copies, and the processes that share it.

    Those that compute other tokens of the same rows have copies too.
    """
    copies = processes(degrees)[0].permute(3, 0, 2, 1).flatten(1, 2)
    if copies.shape[1] == 1:
        return neighbours(device, degrees, "fsdp")
    return DeviceMesh(device, copies, mesh_dim_names=("tensor", "copies", "fsdp"))["copies", "fsdp"]


def owners(device: str, numbers: Tensor) -> DeviceMesh:
    """Return the mesh of the processes that alone have something; all processes make it, in the same order."""
    return DeviceMesh(device, numbers.flatten(), mesh_dim_names=(OWNERS,))


def keep(module: nn.Module, holders: Mapping[nn.Parameter, DeviceMesh]) -> None:
    """Keep parameters in the processes that compute with them alone, wherever a module has them."""
    kept = {
        each: nn.Parameter(cut(each.detach(), mesh, (Replicate(),)), requires_grad=each.requires_grad)
        for each, mesh in holders.items()
    }
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter in kept:
                part._parameters[name] = kept[parameter]
