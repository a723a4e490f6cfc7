"""A model whose weights processes share: parted layer by layer, or gathered for each pass, or both."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, final

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.utils import get_total_norm

from orrery.checkpoints.store import Checkpoint, WriteTensors
from orrery.data.batches.rollouts import PromptRow, Writer
from orrery.errors import UsageError
from orrery.recipes.parallel import ParallelSettings
from orrery.training.distributed import Ranks
from orrery.training.parallel.context_parallel import share_rows
from orrery.training.parallel.expert_parallel import share_experts
from orrery.training.parallel.fully_sharded import shard
from orrery.training.parallel.meshes import neighbours, of_weights, sharded, with_copies
from orrery.training.parallel.pipeline import Stages
from orrery.training.parallel.saving import save_together
from orrery.training.parallel.shards import is_first, own_part, shared, whole
from orrery.training.parallel.sharing import Sharing
from orrery.training.parallel.tensor_parallel import part
from orrery.training.step import StepLoss, accumulate


@final
class SharedWeights:
    """A model whose weights processes share, in as many copies as ``data`` says: see `Placement`.

    Of ``tensor`` processes each computes a part of every layer, of ``context`` processes some tokens of every row, of
    ``expert`` processes some experts, of ``pipeline`` processes some blocks; ``fsdp`` processes share the weights that
    are left.
    Papers: Zhao et al. 2023, https://arxiv.org/abs/2304.11277; Rajbhandari et al. 2020, https://arxiv.org/abs/1910.02054;
    Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053; Lepikhin et al. 2020, https://arxiv.org/abs/2006.16668.
    Every block is a unit that gathers its weights for a pass; what stands outside of the blocks is another. Gradients
    are sums: a loss divides by the counts of the global batch already.
    Differs from the papers: evaluation, samples and rollouts take a copy that is gathered whole for as long as they
    last, since processes call it differently often.

    Raises:
        UsageError: the ranks are those of processes that have the whole model, or a layer is not parted, by its path.
    """

    def __init__(self, model: nn.Module, ranks: Ranks, degrees: ParallelSettings) -> None:
        if degrees.fsdp * degrees.expert > 1 and not isinstance(ranks, Sharing):
            message = f"parallel.fsdp {degrees.fsdp} and expert {degrees.expert}: the ranks of the run share nothing"
            raise UsageError(message, "take those of find_ranks(device, degrees)")
        self.model, self.hollow, self.tensor = model, hollow(model), degrees.tensor
        self.accumulate: Callable[..., StepLoss] = accumulate
        device, settled = next(model.parameters()).device.type, with_copies(degrees, ranks)
        if degrees.context > 1:
            share_rows(model, neighbours(device, settled, "context"))
        weights = of_weights(device, settled) if degrees.tensor * degrees.fsdp > 1 else None
        if weights is not None and degrees.tensor > 1:
            part(model, weights["tensor"], degrees.sequence)
        if degrees.pipeline > 1:
            self.accumulate = Stages(model, settled, device).accumulate
        if isinstance(ranks, Sharing):
            ranks.watch(model)
            if degrees.expert > 1:
                share_experts(model, device, settled, ranks)
            if weights is not None and degrees.fsdp > 1:
                ranks.before = shard(model, sharded(weights), degrees.zero)

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
        cut = [gradient for gradient in gradients if shared(gradient)]
        kept = [gradient for gradient in gradients if not shared(gradient)]
        square = squares([own_part(gradient) for gradient in cut if is_first(gradient)])
        dist.all_reduce(square)
        norm = float((square + squares(kept).to(square)).sqrt())
        if norm > limit:
            for gradient in gradients:
                own_part(gradient).mul_(limit / (norm + 1e-6))  # torch's own function adds as much
        return norm

    def writer(self, make: Callable[[Any], Writer]) -> Writer:
        """Return what gathers the weights for each rollout.

        Raises:
            UsageError: layers are parted, so that the model that learns is some rounding off the one that wrote.
        """
        if self.tensor > 1:
            message = f"parallel.tensor {self.tensor}: an objective on the model's own answers"
            raise UsageError(message, "leave it out; parallel.fsdp shares the weights of a model that writes")
        return GatheredWriter(self, make)

    def save(self, ranks: Ranks, checkpoint: Checkpoint, store: Callable[[WriteTensors], object]) -> None:
        """Have every process write its part of the files."""
        save_together(ranks, checkpoint, store)


@final
class GatheredWriter:
    """What answers prompts by a model that is gathered for it: see `orrery.data.batches.rollouts.Writer`."""

    def __init__(self, placement: SharedWeights, make: Callable[[Any], Writer]) -> None:
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


def squares(gradients: Sequence[Tensor]) -> Tensor:
    """Return the sum of the squares of all numbers, in float64."""
    return torch.as_tensor(get_total_norm(gradients)).double().square()
