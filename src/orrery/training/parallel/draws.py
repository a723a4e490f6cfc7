"""Random numbers of one process among those that compute a layer, or a row, together."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh


def own_draws(compute: Callable[..., Tensor], mesh: DeviceMesh, *given: Any) -> Tensor:
    """Compute with random numbers of this process alone, and leave the generator as all processes have it."""
    seed = int(torch.randint(2**62, ()))
    device = given[0].device
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed + mesh.get_local_rank())
        return compute(*given)
