"""Weights, gradients and optimizer shared among processes by FSDP2: a layer gathers its weights and lets them go."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, final

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard, register_fsdp_forward_method
from torch.nn.utils import get_total_norm

from orrery.checkpoints.store import Checkpoint, WriteTensors
from orrery.data.batches.rollouts import PromptRow, Writer
from orrery.errors import UsageError
from orrery.nn.block import Block
from orrery.nn.feedforward.moe import MoE
from orrery.recipes.parallel import ParallelSettings
from orrery.training.distributed import Ranks
from orrery.training.parallel.saving import save_together
from orrery.training.parallel.shards import own_part, shared, whole
from orrery.training.parallel.sharing import Sharing

ENTRIES = ("start", "step", "hidden", "logits")
"""Methods of models that are called from outside beside ``forward``."""


@final
class FullySharded:
    """A model whose weights ``fsdp`` processes share, in as many copies as ``data`` says: see `Placement`.

    Papers: Zhao et al. 2023, https://arxiv.org/abs/2304.11277; Rajbhandari et al. 2020, https://arxiv.org/abs/1910.02054.
    Every block is a unit that gathers its weights for a pass; what stands outside of the blocks is another. Gradients
    are sums: a loss divides by the counts of the global batch already.
    Differs from the papers: evaluation, samples and rollouts take a copy that is gathered whole for as long as they
    last, since processes call it differently often.

    Raises:
        UsageError: the ranks are those of processes that have the whole model.
    """

    def __init__(self, model: nn.Module, ranks: Ranks, degrees: ParallelSettings) -> None:
        if not isinstance(ranks, Sharing):
            message = f"parallel.fsdp {degrees.fsdp}: the ranks of the run do not share weights"
            raise UsageError(message, "take those of find_ranks(device, degrees)")
        self.model, self.hollow = model, hollow(model)
        self.mesh = mesh_of(next(model.parameters()).device.type, ranks.replicas // degrees.fsdp, degrees.fsdp)
        ranks.watch(model)
        shard(model, self.mesh, degrees.zero)

    @contextmanager
    def whole(self) -> Iterator[Any]:
        """Return a copy of the model with the weights of all processes, and drop it afterwards."""
        memo: dict[int, Any] = {}
        for empty, parameter in zip(self.hollow.parameters(), self.model.parameters(), strict=True):
            memo[id(empty)] = nn.Parameter(whole(parameter.detach()), requires_grad=parameter.requires_grad)
        memo |= {id(old): new.clone() for old, new in zip(self.hollow.buffers(), self.model.buffers(), strict=True)}
        yield copy.deepcopy(self.hollow, memo).train(self.model.training)

    def clip(self, parameters: Iterable[nn.Parameter], limit: float) -> float:
        """Clip by the norm over the parts of all processes, which is computed in float64."""
        gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
        cut = [own_part(gradient) for gradient in gradients if shared(gradient)]
        kept = [gradient for gradient in gradients if not shared(gradient)]
        square = squares(cut)
        dist.all_reduce(square, group=self.mesh.get_group("fsdp"))
        norm = float((square + squares(kept).to(square)).sqrt())
        if norm > limit:
            for part in (*cut, *kept):
                part.mul_(limit / (norm + 1e-6))  # torch's own function adds as much
        return norm

    def writer(self, make: Callable[[Any], Writer]) -> Writer:
        """Return what gathers the weights for each rollout."""
        return GatheredWriter(self, make)

    def save(self, ranks: Ranks, checkpoint: Checkpoint, store: Callable[[WriteTensors], object]) -> None:
        """Have every process write its part of the files."""
        save_together(ranks, checkpoint, store)


@final
class GatheredWriter:
    """What answers prompts by a model that is gathered for it: see `orrery.data.batches.rollouts.Writer`."""

    def __init__(self, placement: FullySharded, make: Callable[[Any], Writer]) -> None:
        self.placement, self.make = placement, make

    def answers(
        self, prompts: Sequence[PromptRow], seeds: Sequence[int], max_new_tokens: int, temperature: float
    ) -> Mapping[str, Tensor]:
        """Return an answer to each prompt, with its reward."""
        with self.placement.whole() as model:
            return self.make(model).answers(prompts, seeds, max_new_tokens, temperature)

    def observed(self, batch: Mapping[str, Tensor], size: int) -> Mapping[str, Tensor]:
        """Return a rollout with what the objective computes of it once."""
        with self.placement.whole() as model:
            return self.make(model).observed(batch, size)

    def described(self) -> str:
        """Return in words how answers are written."""
        with self.placement.whole() as model:
            return self.make(model).described()


def hollow(model: nn.Module) -> nn.Module:
    """Return a copy of a model whose parameters have no memory, those that are shared within it as there."""
    empty = {
        id(each): nn.Parameter(torch.empty_like(each, device="meta"), requires_grad=each.requires_grad)
        for each in model.parameters()
    }
    return copy.deepcopy(model, dict(empty))


def mesh_of(device: str, data: int, fsdp: int) -> DeviceMesh:
    """Return the processes as ``data`` rows of ``fsdp``, neighbours in a row; of one row the row alone."""
    if data == 1:
        return init_device_mesh(device, (fsdp,), mesh_dim_names=("fsdp",))
    return init_device_mesh(device, (data, fsdp), mesh_dim_names=("data", "fsdp"))


def shard(model: nn.Module, mesh: DeviceMesh, zero: int) -> None:
    """Share the parameters of every block, and those of the rest, among the processes of a mesh; gradients are sums.

    A single number has no parts, and what is no floating-point number learns nothing: both stay in every process.
    """
    kept = {each for each in model.parameters() if each.dim() == 0 or not each.is_floating_point()}
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


def squares(gradients: Sequence[Tensor]) -> Tensor:
    """Return the sum of the squares of all numbers, in float64."""
    return torch.as_tensor(get_total_norm(gradients)).double().square()
