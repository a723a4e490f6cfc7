"""What sources, objectives and metrics give a run, held against their contracts: a fault is told by the part's name."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from orrery.data.sources import BatchSource, DividedSource
from orrery.errors import UsageError
from orrery.models.inputs import Batch, Inputs
from orrery.nn.inputs import Tokens
from orrery.objectives import Objective, Term
from orrery.schema.registry import label_of
from orrery.training.distributed import Ranks


def own_rows(source: BatchSource, objective: Objective, step: int, ranks: Ranks) -> Any:
    """Return the batch of a step, of which a process reads its own rows alone where source and objective allow it."""
    if isinstance(source, DividedSource) and objective.own_rows:
        return source.share(step, ranks.rows(source.size))
    return source.batch(step)


def finished_batch(objective: Objective, batch: Any, rng: torch.Generator, inputs: Inputs) -> Batch:
    """Return what a source gave as the objective finishes it.

    Args:
        objective: it draws what is random.
        batch: what the source gave.
        rng: it is drawn from this.
        inputs: what the model reads.

    Raises:
        UsageError: the objective does not find what it needs, or the model not what it reads.
    """
    if not isinstance(batch, Mapping) or not all(isinstance(batch[name], Tensor) for name in batch):
        raise UsageError("the data source gives something other than tensors by name", "see orrery.data.sources.Source")
    given = {name: read for name, read in inputs.items() if name in objective.needs or name not in objective.makes}
    if missing := [name for name in (*objective.needs, *given) if name not in batch]:
        message = f"a batch of the data source has {', '.join(batch) or 'nothing'}, and no {missing[0]}"
        raise UsageError(message, "a source gives in each batch what it lists in gives")
    _refuse_unreadable("the data source", batch, given)
    finished = objective.prepare(batch, rng)
    if not objective.makes:
        return finished
    label = f"the objective {label_of(type(objective))}"
    if missing := [name for name in (*objective.makes, *inputs) if name not in finished]:
        message = f"a batch of {label} has {', '.join(finished) or 'nothing'}, and no {missing[0]}"
        raise UsageError(message, "prepare() returns what the objective lists in makes, and what the model reads")
    _refuse_unreadable(label, finished, inputs)
    return finished


def _refuse_unreadable(whose: str, batch: Batch, inputs: Inputs) -> None:
    """Refuse fields that differ in their rows, and numbers that are no tokens of the model."""
    rows = {tensor.shape[:1] for tensor in batch.values()}
    if len(rows) > 1 or not all(rows):
        shapes = ", ".join(f"{name} {list(tensor.shape)}" for name, tensor in batch.items())
        raise UsageError(f"a batch of {whose} differs in its rows: {shapes}", "the first axis is that of rows")
    for name, read in inputs.items():
        if isinstance(read, Tokens):
            _refuse_beyond(whose, name, batch[name], read.vocabulary)


def _refuse_beyond(whose: str, name: str, ids: Tensor, vocabulary: int) -> None:
    """Refuse numbers that are no tokens; those on a device are not waited for."""
    if not ids.numel():
        raise UsageError(f"a batch of {whose} has no {name}: its shape is {list(ids.shape)}", "give tokens")
    if ids.is_floating_point():
        raise UsageError(f"a batch of {whose} has {name} that are no whole numbers", "give token numbers")
    if ids.device.type == "cpu" and (int(ids.min()) < 0 or int(ids.max()) >= vocabulary):
        message = f"a batch of {whose} has {name} from {int(ids.min())} to {int(ids.max())}"
        raise UsageError(message, f"the model knows tokens from 0 to {vocabulary - 1}")


def refuse_misfit(objective: Objective, terms: Any, counts: Any) -> None:
    """Refuse terms that are no sums over what the objective has counted.

    Raises:
        UsageError: there are none, one was not counted or is not a ``Term`` of one number, or none has a gradient.
    """
    if fault := _misfit(terms, counts):
        raise UsageError(f"the objective {label_of(type(objective))}: {fault}", "see orrery.objectives.Objective")


def _misfit(terms: Any, counts: Any) -> str | None:
    """Say what is wrong with the terms of an objective, or nothing."""
    if not isinstance(terms, Mapping) or not all(isinstance(term, Term) for term in terms.values()):
        return "loss() returns something other than a Term by each name"
    if unknown := [name for name in terms if name not in counts]:
        return f"loss() returns the term {unknown[0]}, and counts() counts {', '.join(counts) or 'nothing'}"
    if wrong := [name for name, term in terms.items() if not torch.is_tensor(term.sum) or term.sum.numel() != 1]:
        return f"the sum of the term {wrong[0]} is not one number"
    if not any(term.sum.requires_grad for term in terms.values()):
        return "nothing in its loss has a gradient; it was computed without the model, or with detach() or no_grad()"
    return None


def checked_sums(name: str, sums: Any) -> Tensor:
    """Return what a metric measured on one batch, in float64 on the host.

    Raises:
        UsageError: it is no row of numbers.
    """
    if not isinstance(sums, Tensor) or sums.dim() != 1:
        raise UsageError(f"the metric {name}: measure() returns no tensor of one axis", "see orrery.metrics.Metric")
    return sums.detach().cpu().double()


def checked_value(name: str, value: Any) -> float:
    """Return what a metric's sums come to, as a number.

    Raises:
        UsageError: it is none.
    """
    if isinstance(value, int | float) or (isinstance(value, Tensor) and value.numel() == 1):
        return float(value)
    raise UsageError(f"the metric {name}: value() returns no number", "see orrery.metrics.Metric")
