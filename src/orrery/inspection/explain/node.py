"""A node: one kind of tensor of a pass, how it follows from others, and how one of its numbers is explained."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.inspection.explain.formula import Formula, Index, Operand, Vector, given
from orrery.inspection.recorded import Recorded


class Numbers:
    """The tensors of one pass by key: those that were recorded, and those that follow from them."""

    def __init__(self, recorded: Recorded, nodes: "dict[str, TensorNode]", paths: Mapping[int, str]) -> None:
        self.recorded, self.nodes, self.paths = recorded, nodes, paths
        self._computed: dict[str, Tensor] = {}
        self.ends: dict[str, str | None] = {}  # of layers that were taken apart: the key of their last operation

    def __getitem__(self, key: str) -> Tensor:
        if key in self.recorded:
            return self.recorded[key]
        if isinstance(self.nodes.get(key), GivenTensor) or key not in self.nodes:
            raise UsageError(f"the pass has not kept {key}, from which others follow", "keep everything: keep=['*']")
        if key not in self._computed:
            with torch.no_grad():
                self._computed[key] = self.nodes[key].compute(self)
        return self._computed[key]

    def at(self, key: str, index: Index) -> float:
        """Return one number of the first row."""
        return float(self[key][0][index])

    def operand(self, key: str, index: Index) -> Operand:
        """Return one number of the first row, as it stands in a formula."""
        return Operand(named(key, index), self.at(key, index), key, index)

    def vector(self, key: str, place: Callable[[int], Index], values_N: Float[Tensor, "N"]) -> Vector:
        """Return many numbers of a tensor; ``place`` gives the index of each."""
        return Vector(values_N, lambda i, value: Operand(named(key, place(i)), value, key, place(i)))

    def weight(self, owner: nn.Module, name: str, place: Callable[[int], Index], values_N: Tensor) -> Vector:
        """Return many numbers of a weight of a module."""
        path = self.path(owner, name)
        return Vector(
            values_N, lambda i, value: Operand(named(path, place(i), 2), value, index=place(i), parameter=path)
        )

    def one_weight(self, owner: nn.Module, name: str, index: Index, value: float) -> Operand:
        """Return one number of a weight of a module."""
        path = self.path(owner, name)
        return Operand(named(path, index, 2), value, index=index, parameter=path)

    def path(self, owner: nn.Module, name: str) -> str:
        """Return the path of a parameter in the model."""
        return f"{self.paths.get(id(owner), type(owner).__name__)}.{name}".lstrip(".")


def named(key: str, index: Index, parts: int = 1) -> str:
    """Return how one number of a tensor reads in a formula: the last parts of its key and its place."""
    return f"{'.'.join(key.split('.')[-parts:])}[{', '.join(map(str, index))}]"


class TensorNode(ABC):
    """One kind of tensor, ``[B, ...]`` with one row. Its key is its name in ``Graph``."""

    @abstractmethod
    def compute(self, numbers: Numbers) -> Tensor:
        """Return the whole tensor from those that it follows from; asked where it was not recorded."""

    @abstractmethod
    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the formula of one of its numbers, with at most ``most`` terms named."""


@dataclass(frozen=True)
class GivenTensor(TensorNode):
    """A tensor whose formula is not known here: it can be shown and is not taken apart.

    Attributes:
        key: its own.
        why: what it is.
    """

    key: str
    why: str

    def compute(self, numbers: Numbers) -> Tensor:
        """Return what was recorded."""
        return numbers.recorded[self.key]

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the number and why it is not explained."""
        return given(self.why, numbers.at(self.key, index))


@dataclass(frozen=True)
class Same(TensorNode):
    """A tensor that is another, under a second name."""

    key: str
    source: str

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the other."""
        return numbers[self.source]

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the formula of the other: one step is enough."""
        return numbers.nodes[self.source].explain(numbers, index, most)
