"""Where the weights of a run lie: whole in every process, or shared among them."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, final, runtime_checkable

from torch import nn
from torch.nn.utils import clip_grad_norm_

from orrery.checkpoints.store import Checkpoint, WriteTensors
from orrery.checkpoints.tensors import write_tensors
from orrery.data.batches.rollouts import Writer
from orrery.errors import UsageError
from orrery.objectives import Objective
from orrery.recipes.parallel import ParallelSettings, shown
from orrery.schema.registry import label_of
from orrery.training.distributed import Ranks
from orrery.training.step import StepLoss, accumulate


@runtime_checkable
class Placement(Protocol):
    """What the training loop asks of a model whose weights may be shared; every process asks it."""

    accumulate: Callable[..., StepLoss]
    """What computes the gradient of a step: see `orrery.training.step.accumulate`."""

    def whole(self) -> AbstractContextManager[Any]:
        """Return the model with all of its weights, to be read and called, by some processes more often than others."""
        ...

    def clip(self, parameters: Iterable[nn.Parameter], limit: float) -> float:
        """Scale the gradients down to a norm over all of them of at most ``limit``, and return what it was."""
        ...

    def writer(self, make: Callable[[Any], Writer]) -> Writer:
        """Return what writes with the weights as they are then; ``make`` makes one of a whole model."""
        ...

    def save(self, ranks: Ranks, checkpoint: Checkpoint, store: Callable[[WriteTensors], object]) -> None:
        """Save a checkpoint with the parts that this process has of its tensors; the first process has the store."""
        ...


@final
class Everywhere:
    """Every process has the whole model: see `Placement`."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.accumulate = model, accumulate

    def whole(self) -> AbstractContextManager[Any]:
        """Return the model itself."""
        return nullcontext(self.model)

    def clip(self, parameters: Iterable[nn.Parameter], limit: float) -> float:
        """Clip by torch's own function."""
        return float(clip_grad_norm_(parameters, limit))

    def writer(self, make: Callable[[Any], Writer]) -> Writer:
        """Return what writes with the model itself."""
        return make(self.model)

    def save(self, ranks: Ranks, checkpoint: Checkpoint, store: Callable[[WriteTensors], object]) -> None:
        """Have the first process save."""
        if ranks.rank == 0:
            store(write_tensors)


def refuse_unshared(objective: Objective, degrees: ParallelSettings) -> None:
    """Refuse an objective that needs whole rows, or the whole model, where processes share them.

    Raises:
        UsageError: it does.
    """
    for name, what in (("context", "whole rows"), ("pipeline", "the whole model at once")):
        if getattr(degrees, name) > 1 and not objective.each_token:
            message = (
                f"parallel.{name} {getattr(degrees, name)}: the objective {label_of(type(objective))} needs {what}"
            )
            hint = f"causal, sft and prefix learn from each token alone; else leave parallel.{name} out"
            raise UsageError(message, hint)


def place(model: nn.Module, ranks: Ranks, degrees: ParallelSettings) -> Placement:
    """Place a model, which every process has whole so far, as the degrees say."""
    if not shown(degrees) and degrees.expert == 1:
        return Everywhere(model)
    from orrery.training.parallel.shared_weights import SharedWeights  # its parts of torch take a second to import

    return SharedWeights(model, ranks, degrees)
