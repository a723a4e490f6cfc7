"""What a batch keeps in memory between forward and backward, measured on a few of its rows."""

from itertools import chain

import torch
from torch import Tensor, nn

from orrery.models.inputs import Batch
from orrery.objectives import Objective
from orrery.training.loop import Parts
from orrery.training.precision import Precision
from orrery.training.step import rows_of, take, to_device

LOOKED_AT = 64
"""Batches among which the largest is sought: those of pairs differ in their lengths."""
FEW, MORE = 2, 4
"""Rows that are computed: bytes grow by the same number with each row."""


def activation_bytes(parts: Parts, precision: Precision, rows: int) -> int:
    """Return the bytes that ``rows`` rows of the largest of the first batches keep for their gradient.

    Two and four of its rows go through the model; the rest follows, for what a row adds is the same for each. Rows
    of fewer real tokens than the others may add less.
    """
    batch = max((parts.source.batch(step) for step in range(LOOKED_AT)), key=_size)
    batch = parts.objective.prepare(batch, torch.Generator().manual_seed(0))
    rows = min(rows, rows_of(batch))
    counted = [min(rows, count) for count in (FEW, MORE)]
    model = parts.model.to(precision.device).train()
    with torch.random.fork_rng():
        few, more = (kept_bytes(model, parts.objective, take(batch, range(count)), precision) for count in counted)
    each = (more - few) / max(1, counted[1] - counted[0])
    return round(more + each * (rows - counted[1]))


def kept_bytes(model: nn.Module, objective: Objective, batch: Batch, precision: Precision) -> int:
    """Return the bytes of all storages that autograd keeps after a forward pass, without parameters and buffers."""
    own = {tensor.untyped_storage().data_ptr() for tensor in chain(model.parameters(), model.buffers())}
    kept: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor), precision.context():
        terms = objective.loss(model, to_device(batch, precision.device))
        total = sum(kept.values())
    del terms
    return total


def _size(batch: Batch) -> int:
    return sum(tensor.numel() for tensor in batch.values())
