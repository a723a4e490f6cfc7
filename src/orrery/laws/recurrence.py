"""The law of recurrence: token by token, or over whole rows at once, the numbers are the same."""

from collections.abc import Iterator
from functools import partial

import torch

from orrery.laws.evidence import FLOAT64, CannotRunError, Evidence, deviation, within
from orrery.laws.models import random_ids, tiny, trained
from orrery.nn.attention.kernels import eager, sdpa
from orrery.nn.recurrent.recurrence import Recurrence

SINGLE = 1e-4


def check(family: str) -> Iterator[Evidence]:
    """Compare the definition, step by step, with the engine over padded rows: outputs, gates and gradients.

    Raises:
        CannotRunError: the family has no recurrence.
    """
    if not any(isinstance(module, Recurrence) for module in tiny(family).modules()):
        raise CannotRunError("inapplicable", "it has no recurrence, or one that listens and has one form alone")
    evidence = partial(within, law="recurrence", family=family)
    for precision, dtype, bound in (("float64", torch.float64, FLOAT64), ("float32", torch.float32, SINGLE)):
        yield evidence(f"step form == whole rows, {precision}", value=outputs(family, dtype), bound=bound)
    yield evidence("step form == whole rows, gradients, float64", value=gradients(family), bound=FLOAT64)


def padded() -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows of eleven, four and no tokens, padded on the left."""
    return random_ids(3, 11), torch.arange(11) >= torch.tensor([[0], [7], [11]])


@torch.no_grad()
def outputs(family: str, dtype: torch.dtype) -> float:
    """Compare the logits of real tokens."""
    ids, real = padded()
    steps, whole = (tiny(family, dtype)(ids, real=real, kernel=kernel)[real] for kernel in (eager, sdpa))
    return deviation(whole, steps)


def gradients(family: str) -> float:
    """Compare the gradients of every parameter."""
    model, (ids, real) = tiny(family), padded()
    found = []
    for kernel in (eager, sdpa):
        loss = model(ids, real=real, kernel=kernel)[real].pow(2).mean()
        found.append(torch.autograd.grad(loss, trained(model)))
    return max(deviation(a, b) for a, b in zip(*found, strict=True))
