"""The pass of word2vec by its plain definition: autograd, one example after another; any objective, slowly."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from orrery.models.word2vec import definition
from orrery.models.word2vec.draws import Contexts, Targets
from orrery.models.word2vec.objectives import WordLoss


def descend_by_definition(
    objective: WordLoss,
    vectors: NDArray[Any],
    weights: NDArray[Any],
    contexts: Contexts,
    targets: Targets,
    rate: float,
) -> float:
    """Take one step per example, in place, and return the sum of the losses before each step.

    What `orrery.kernels.word2vec.descend` does, but that a row which stands twice among the targets of one
    example is stepped twice from the same place.
    """
    read, output_table = (torch.from_numpy(table).requires_grad_() for table in (vectors, weights))
    total = 0.0
    for inputs, rows, labels in examples(contexts, targets):
        loss = objective.loss(definition.hidden(read, inputs), output_table, rows, labels)
        to_vectors, to_weights = torch.autograd.grad(loss, (read, output_table))
        with torch.no_grad():
            read.sub_(to_vectors, alpha=rate)
            output_table.sub_(to_weights, alpha=rate)
        total += float(loss.detach())
    return total


def examples(contexts: Contexts, targets: Targets) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield each example as tensors: the words read, the output rows, their labels."""
    inputs = np.split(contexts.inputs, contexts.ends[:-1])
    rows = np.split(targets.rows, targets.ends[:-1])
    labels = np.split(targets.labels, targets.ends[:-1])
    for read, output, label in zip(inputs, rows, labels, strict=True):
        yield torch.from_numpy(read).long(), torch.from_numpy(output).long(), torch.from_numpy(label)
