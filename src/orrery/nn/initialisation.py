"""How new weights are drawn: the usual way, and the call that a module answers which has a way of its own."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor, nn

_INTO_THE_STREAM = ("out", "down")
"""The projections that add to the residual stream."""


@dataclass(frozen=True)
class Draw:
    """What new weights are drawn from, for one model.

    Attributes:
        rng: the source of chance; what is drawn from nothing else depends on the seed alone.
        std: the deviation of a matrix.
        depth: the number of blocks.
        tables: deviations of embeddings, by the identity of their weights, where they are others.
        named: deviations by a regular expression that is searched in a module's path; the first that is found counts.
        layer: the number of the block that is drawn, 0 for the first.
    """

    rng: torch.Generator
    std: float
    depth: int
    tables: Mapping[int, float]
    named: Mapping[str, float] = field(default_factory=dict)
    layer: int = 0

    @property
    def height(self) -> float:
        """Return how high the block stands: 0 for the first, 1 for the last."""
        return self.layer / max(1, self.depth - 1)

    def usual(self, module: nn.Module, name: str) -> None:
        """Draw what a single module of torch holds itself, as GPT-2 does; anything else is left as it was built.

        Matrices are normal with deviation ``std``, those that add to the residual stream ``std / sqrt(2 depth)`` so
        that the stream's variance does not grow with depth; biases are zero; a recurrent engine is uniform within
        ``1 / sqrt(D)``, as in torch. ``name`` is the module's path.
        """
        if isinstance(module, nn.Linear | nn.Embedding | nn.Conv1d):
            self.normal(module.weight, self.tables.get(id(module.weight), self._deviation(name)))
        if isinstance(module, nn.Linear | nn.Conv1d) and module.bias is not None:
            module.bias.zero_()
        if isinstance(module, nn.RNNBase):
            for parameter in module.parameters():
                self.uniform(parameter, module.hidden_size**-0.5)

    def _deviation(self, name: str) -> float:
        """Return the deviation of the matrix of a module."""
        for pattern, deviation in self.named.items():
            if re.search(pattern, name):
                return deviation
        inward = name.rpartition(".")[2] in _INTO_THE_STREAM
        return self.std / (2 * self.depth) ** 0.5 if inward else self.std

    def normal(self, parameter: Tensor, deviation: float) -> None:
        """Draw from a normal distribution around zero."""
        parameter.copy_(torch.empty(parameter.shape).normal_(0.0, deviation, generator=self.rng))

    def even(self, linear: nn.Linear) -> None:
        """Draw a matrix evenly within ``1 / sqrt(inputs)``; its bias becomes zero."""
        self.uniform(linear.weight, linear.in_features**-0.5)
        if linear.bias is not None:
            linear.bias.zero_()

    def uniform(self, parameter: Tensor, bound: float) -> None:
        """Draw evenly from ``-bound`` to ``bound``."""
        parameter.copy_(torch.empty(parameter.shape).uniform_(-bound, bound, generator=self.rng))


@runtime_checkable
class SelfInitialised(Protocol):
    """A module that draws all that it holds, the parts of its parts too, in its own way."""

    def initialise(self, draw: Draw) -> None:
        """Draw every parameter; called without gradients."""
        ...


@runtime_checkable
class ReadsWords(Protocol):
    """A module that wants the words it reads drawn with another deviation than all else."""

    def word_deviation(self, width: int, tied: bool) -> float | None:
        """Return the deviation for a table of this width, ``tied`` if it is the head too; nothing where as usual."""
        ...
