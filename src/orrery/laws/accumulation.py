"""The law of accumulation: any split of a batch into micro-batches gives the same gradient."""

from collections.abc import Iterator
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from orrery.laws.evidence import FLOAT64, CannotRunError, Evidence, deviation, within
from orrery.laws.models import Subject, random_ids, tiny, trained
from orrery.objectives.protocols import Batch, Objective

SINGLE = 1e-6
ROWS, COLUMNS = 7, 11
IGNORED = -100


def check(family: str) -> Iterator[Evidence]:
    """Compare the gradients of splits with those of the whole batch, and the whole with the plain definition.

    Raises:
        CannotRunError: the objective is not part of this installation.
    """
    evidence = partial(within, law="accumulation", family=family)
    objective = causal_objective()
    for name, dtype, bound in (("float64", torch.float64, FLOAT64), ("float32", torch.float32, SINGLE)):
        model, batch = tiny(family, dtype), ragged_batch()
        whole = gradients(model, objective, [batch])
        for sizes in ((1,) * ROWS, (3, 4), (5, 1, 1)):
            found = gradients(model, objective, split(batch, sizes))
            value = max(deviation(a, b) for a, b in zip(found, whole, strict=True))
            yield evidence(f"micro-batches {sizes} == whole batch, {name}", value=value, bound=bound)
        value = max(deviation(a, b) for a, b in zip(whole, definition(model, batch), strict=True))
        yield evidence(f"whole batch == mean over all targets, {name}", value=value, bound=bound)


def causal_objective() -> Objective:
    """Return next-token prediction."""
    try:
        from orrery.objectives.causal import CausalLanguageModel
    except ImportError as error:
        raise CannotRunError("the causal objective is not there", "it comes with training") from error
    return CausalLanguageModel()


def ragged_batch() -> Batch:
    """Return right-padded rows of very unequal lengths: a mean of means would be far off."""
    ids = random_ids(ROWS, COLUMNS + 1)
    real = torch.arange(COLUMNS) < torch.tensor([11, 1, 2, 10, 1, 7, 3])[:, None]
    return {"ids": ids[:, :-1], "targets": ids[:, 1:].masked_fill(~real, IGNORED), "real": real}


def split(batch: Batch, sizes: tuple[int, ...]) -> list[Batch]:
    """Cut a batch into micro-batches of these sizes."""
    parts = {name: tensor.split(sizes) for name, tensor in batch.items()}
    return [{name: parts[name][i] for name in batch} for i in range(len(sizes))]


def gradients(model: Subject, objective: Objective, parts: list[Batch]) -> list[Tensor]:
    """Add up the gradients of ``weight * sum / global count`` over micro-batches."""
    parts = [objective.prepare(part, torch.Generator()) for part in parts]
    counts = [objective.counts(part) for part in parts]
    totals = {name: sum(count[name] for count in counts) for name in counts[0]}
    added = [torch.zeros_like(parameter) for parameter in trained(model)]
    for part in parts:
        terms = objective.loss(model, part)
        loss = torch.stack([term.weight * term.sum / totals[name] for name, term in terms.items()]).sum()
        found = torch.autograd.grad(loss, trained(model), allow_unused=True)
        added = [a if b is None else a + b for a, b in zip(added, found, strict=True)]
    return added


def definition(model: Subject, batch: Batch) -> list[Tensor]:
    """Return the gradients of the mean cross entropy over all targets, through the logits of the whole batch."""
    logits = model(batch["ids"], real=batch["real"])
    loss = F.cross_entropy(logits.flatten(0, 1), batch["targets"].flatten(), ignore_index=IGNORED)
    found = torch.autograd.grad(loss, trained(model), allow_unused=True)
    return [torch.zeros_like(p) if g is None else g for p, g in zip(trained(model), found, strict=True)]
