"""The law of accumulation: any split of a batch into micro-batches and ranks gives the same gradient."""

from collections.abc import Iterable, Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from orrery.laws.evidence import FLOAT64, CannotRunError, Evidence, deviation, within
from orrery.laws.models import Subject, TargetModel, tiny, trained, translates
from orrery.laws.place import device
from orrery.laws.runs import examples, objective_of
from orrery.models.inputs import Batch
from orrery.nn.cross_entropy import IGNORED
from orrery.objectives import Objective

SINGLE = 1e-6
PRECISIONS = (("float64", torch.float64, FLOAT64, (1, 3)), ("float32", torch.float32, SINGLE, (3,)))


def check(family: str) -> Iterator[Evidence]:
    """Compare the gradients of splits with those of the whole batch, and the whole with the plain definition.

    Raises:
        CannotRunError: training is not part of this installation.
    """
    evidence = partial(within, law="accumulation", family=family)
    objective, batch = objective_of(family), examples(family, 0)
    wholes = {dtype: gradients(subject(family, dtype), objective, batch, None) for _, dtype, *_ in PRECISIONS}
    for name, dtype, bound, sizes in PRECISIONS:
        model, whole = subject(family, dtype), wholes[dtype]
        for size in sizes:
            value = worst(gradients(model, objective, batch, size), whole)
            yield evidence(f"micro-batches of {size} == whole batch, {name}", value=value, bound=bound)
        value = worst(whole, definition(model, batch))
        yield evidence(f"whole batch == mean over all targets, {name}", value=value, bound=bound)
    model = subject(family, torch.float64)
    shares = [gradients(model, objective, batch, 1, OneOf(rank, 2)) for rank in range(2)]
    value = worst([a + b for a, b in zip(*shares, strict=True)], wholes[torch.float64])
    yield evidence("two ranks == one, float64", value=value, bound=FLOAT64)


def subject(family: str, dtype: torch.dtype) -> Subject:
    """Return the tiny model as training calls it: an encoder-decoder reads the batch's own sources."""
    model = tiny(family, dtype)
    return model.model if isinstance(model, TargetModel) and translates(family) else model


def worst(gradients: list[Tensor], expected: list[Tensor]) -> float:
    """Return the largest deviation of any parameter's gradient."""
    return max(deviation(a, b) for a, b in zip(gradients, expected, strict=True))


class OneOf:
    """One of several ranks, computed alone: its rows are its own, and what would be summed stays its share."""

    def __init__(self, rank: int, ranks: int) -> None:
        self.rank = self.replica = self.part = rank
        self.replicas = self.parts = self.devices = ranks

    def rows(self, count: int) -> range:
        """Return a contiguous share of the rows."""
        return range(count * self.rank // self.replicas, count * (self.rank + 1) // self.replicas)

    def passes(self, count: int, size: int | None) -> Iterator[tuple[range, bool]]:
        """Yield own rows."""
        from orrery.training.pieces import passes

        return passes(self.rows(count), size)

    def own(self, batch: Batch) -> Batch:
        """Return all tokens."""
        return batch

    def sum(self, values: Tensor) -> Tensor:
        """Return the share."""
        return values

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Keep the gradients of this rank alone, unsummed."""

    def any(self, flag: bool) -> bool:
        """Return the flag."""
        return flag

    def told(self, text: str) -> str:
        """Return the text."""
        return text


def gradients(
    model: Subject, objective: Objective, batch: Batch, micro_batch: int | None, rank: OneOf | None = None
) -> list[Tensor]:
    """Return the gradients that a step of training leaves on the parameters.

    Raises:
        CannotRunError: the training loop is not there.
    """
    try:
        from orrery.training.precision import Precision
        from orrery.training.step import accumulate
    except ImportError as error:
        raise CannotRunError("the training loop is not there", "it comes with training") from error
    model.zero_grad(set_to_none=True)
    with torch.random.fork_rng(devices=[]):
        accumulate(
            model,
            objective,
            objective.prepare(batch, torch.Generator()),
            micro_batch=micro_batch,
            seed=(0, 0),
            ranks=rank or OneOf(0, 1),
            precision=Precision("float32", "plain", device().type, torch.get_num_threads()),
        )
    left = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained(model)]
    model.zero_grad(set_to_none=True)
    return left


def definition(model: Subject, batch: Batch) -> list[Tensor]:
    """Return the gradients of the mean cross entropy over all targets, through the logits of the whole batch."""
    (logits,) = model(batch).values()
    loss = F.cross_entropy(logits.flatten(0, 1), batch["targets"].flatten(), ignore_index=IGNORED)
    exact = torch.autograd.grad(loss, trained(model), allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(trained(model), exact, strict=True)]
