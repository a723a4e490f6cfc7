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
COPIES = "copies"


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


def of_weights(device: str, degrees: ParallelSettings) -> DeviceMesh:
    """Return the mesh in which weights lie: copies, processes that share them, and that compute a layer together.

    Those that compute other tokens of the same rows have copies too. Axes of one process are left out.
    """
    numbers = processes(degrees)[0].transpose(1, 2).flatten(0, 1)
    sizes = dict(zip((COPIES, "fsdp", "tensor"), numbers.shape, strict=True))
    used = tuple(name for name, size in sizes.items() if size > 1)
    return DeviceMesh(device, numbers.view([sizes[name] for name in used]), mesh_dim_names=used)


def sharded(weights: DeviceMesh) -> DeviceMesh:
    """Return the mesh of a unit of FSDP: copies, where there are some, and the processes that share it."""
    names = weights.mesh_dim_names or ()
    return weights[COPIES, "fsdp"] if COPIES in names else weights["fsdp"]


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
