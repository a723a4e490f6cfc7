"""Joining the processes of a run: alone, with copies of the model, or with weights that they share."""

import torch

from orrery.recipes.parallel import ParallelSettings
from orrery.training.distributed import Alone, Group, Ranks, own_device
from orrery.training.parallel.sharing import Sharing
from orrery.training.processes import processes


def find_ranks(device: str = "auto", degrees: ParallelSettings | None = None) -> Ranks:
    """Join the group that ``torchrun`` describes in the environment, or be alone.

    From here on ``cuda`` is this process's own GPU.

    Args:
        device: of a recipe.
        degrees: how the processes share the run; by default each has the whole model.

    Raises:
        MachineError: the machine has fewer GPUs than processes.
    """
    if processes() == 1:
        return Alone()
    own = own_device(device)
    if own.type == "cuda":
        torch.cuda.set_device(own)
    group = Group(device, degrees)
    return group if degrees is None or degrees.fsdp == degrees.expert == 1 else Sharing(group)
