"""Where the weights of a run lie: whole in every process, or shared among them."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, final, runtime_checkable

from torch import nn
from torch.nn.utils import clip_grad_norm_

from orrery.checkpoints.store import Checkpoint, WriteTensors
from orrery.checkpoints.tensors import write_tensors
from orrery.data.batches.rollouts import Writer
from orrery.recipes.parallel import ParallelSettings
from orrery.training.distributed import Ranks


@runtime_checkable
class Placement(Protocol):
    """What the training loop asks of a model whose weights may be shared; every process asks it."""

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
        self.model = model

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


def place(model: nn.Module, ranks: Ranks, degrees: ParallelSettings) -> Placement:
    """Place a model, which every process has whole so far, as the degrees say."""
    if degrees.fsdp == degrees.tensor == 1:
        return Everywhere(model)
    from orrery.training.parallel.shared_weights import SharedWeights  # its parts of torch take a second to import

    return SharedWeights(model, ranks, degrees)
