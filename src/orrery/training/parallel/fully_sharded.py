"""Weights, gradients and optimizer shared among processes by FSDP2: a layer gathers its weights and lets them go."""

import warnings
from collections.abc import Callable
from typing import Any

from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method

from orrery.nn.block import Block
from orrery.nn.feedforward.moe import MoE
from orrery.training.parallel.shards import owned

ENTRIES = ("start", "step", "hidden", "logits")
"""Methods of models that are called from outside beside ``forward``."""


def shard(model: nn.Module, mesh: DeviceMesh, zero: int) -> Callable[[bool], None]:
    """Share the parameters of every block, and those of the rest, among the processes of a mesh; gradients are sums.

    A single number has no parts, and what is no floating-point number learns nothing: both stay in every process. What
    some processes alone have stays there.
    With ``zero`` 3 weights are gathered for each pass forward and each backward, with 2 once a step. Each pass adds up
    the gradients of the processes that share, and the last those of the copies.

    Returns:
        what is to be called before each pass of a step, with whether it is the last.
    """
    # Answers that are views, as those of a reward model, are changed in place by nobody.
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor")
    kept = {each for each in model.parameters() if each.dim() == 0 or not each.is_floating_point() or owned(each)}
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    for unit in (*blocks, model):
        fully_shard(unit, mesh=mesh, reshard_after_forward=zero == 3, ignored_params=kept)
        if isinstance(unit, FSDPModule):
            unit.set_gradient_divide_factor(1.0)
            unit.set_force_sum_reduction_for_comms(True)
            if unit is not model and any(isinstance(module, MoE) for module in unit.modules()):
                # Each process calls other experts, and all have to send the same gradients.
                unit.set_reduce_scatter_unused_params(True, recurse=False)
    for name in ENTRIES:
        if hasattr(model, name):
            register_fsdp_forward_method(model, name)

    def before(last: bool) -> None:
        root: Any = model
        root.set_is_last_backward(last)
        root.set_requires_all_reduce(last)
        root.set_reshard_after_backward(last or zero == 3)

    return before
