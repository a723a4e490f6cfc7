"""The ranks of a run that share its weights: each goes through the model as often as the others, rows or not."""

from collections.abc import Callable, Iterable
from typing import Any, final

import torch
from torch import Tensor, nn

from orrery.models.inputs import Batch
from orrery.nn.feedforward.moe import MoE
from orrery.training.distributed import Group
from orrery.training.parallel.shards import owned, shared
from orrery.training.pieces import Passes, pieces


@final
class Sharing:
    """Ranks whose layers gather their weights from all: see `orrery.training.distributed.Ranks`."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.rank, self.replica, self.replicas, self.devices = group.rank, group.replica, group.replicas, group.devices
        self.part, self.parts = group.part, group.parts
        self.idling = False
        self.answers_others = False
        """Whether experts answer to tokens of other ranks, so that they are called for these in an idle pass too."""
        self.before: Callable[[bool], None] = lambda last: None
        """Called before each pass of a step, with whether it is the last: all ranks make as many."""
        self.experts: list[nn.Module] = []
        self.used: set[nn.Module] = set()

    def watch(self, model: nn.Module) -> None:
        """Note from now on which experts of mixtures are called: one that no rank called has no gradient."""
        self.experts = [expert for module in model.modules() if isinstance(module, MoE) for expert in module.experts]
        for expert in self.experts:
            expert.register_forward_hook(self._called)

    def _called(self, expert: nn.Module, inputs: Any, output: Any) -> None:
        if not self.idling or self.answers_others:
            self.used.add(expert)

    def rows(self, count: int) -> range:
        """Return a contiguous share of the rows."""
        return self.group.rows(count)

    def passes(self, count: int, size: int | None) -> Passes:
        """Yield own rows, then a row that adds nothing for each pass that the rank with the most rows makes more."""
        own, most = [*pieces(self.rows(count), size)], len([*pieces(range(-(-count // self.replicas)), size)])
        for number, rows in enumerate([*own, *[range(1)] * (most - len(own))]):
            self.idling = number >= len(own)
            self.before(number == most - 1)
            yield rows, not self.idling
        self.idling = False

    def own(self, batch: Batch) -> Batch:
        """Return the tokens of rows that this process computes."""
        return self.group.own(batch)

    def sum(self, values: Tensor) -> Tensor:
        """Return the sum over the ranks."""
        return self.group.sum(values)

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Sum the gradients of parameters that every rank has whole; those that are shared were summed on the way.

        Of an expert that no rank called, the shared gradients are zeros, where one process has none.
        """
        if self.experts:
            called = self.sum(torch.tensor([expert in self.used for expert in self.experts]).int()).tolist()
            for expert, count in zip(self.experts, called, strict=True):
                if not count:
                    expert.zero_grad(set_to_none=True)
            self.used.clear()
        self.group.sum_gradients(parameter for parameter in parameters if owned(parameter) or not shared(parameter))

    def any(self, flag: bool) -> bool:
        """Say whether any rank raised its flag."""
        return self.group.any(flag)

    def told(self, text: str) -> str:
        """Return the text of the first rank."""
        return self.group.told(text)
