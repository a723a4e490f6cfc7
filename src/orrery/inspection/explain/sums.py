"""Nodes that add up: a linear map, the output matrix over all heads, a sum of tensors, a product of two."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.inspection.explain.formula import (
    Formula,
    FormulaTerm,
    Index,
    Operand,
    Vector,
    function_of,
    sum_of,
    term,
    written,
)
from orrery.inspection.explain.node import Numbers, TensorNode
from orrery.tuning import TransformedLinear, matrix_of


def affine(module: nn.Module, width: int) -> tuple[Float[Tensor, "E D"], Float[Tensor, "E"] | None]:
    """Return the matrix and the bias of a linear map, also of one that a transform has replaced."""
    if isinstance(module, nn.Linear | TransformedLinear):
        return matrix_of(module), None if module.bias is None else module.bias.detach()
    like = next(module.parameters())
    dtype = like.dtype if like.dtype.is_floating_point else torch.float32
    with torch.no_grad():
        bias_1E = module(torch.zeros(1, width, dtype=dtype, device=like.device))
        weight_DE = module(torch.eye(width, dtype=dtype, device=like.device)) - bias_1E
    return weight_DE.T, bias_1E[0]


def row_of(numbers: Numbers, module: nn.Module, channel: int, width: int) -> tuple[Vector, list[FormulaTerm]]:
    """Return the row of a linear map that makes one channel, and its bias as a term of its own."""
    weight_ED, bias_E = affine(module, width)
    row = numbers.weight(module, "weight", lambda d: (channel, d), weight_ED[channel])
    if bias_E is None:
        return row, []
    return row, [term(numbers.one_weight(module, "bias", (channel,), float(bias_E[channel])))]


@dataclass(frozen=True)
class Linear(TensorNode):
    """``y_e = sum_d x_d W_ed + b_e``, ``[B, ..., D]`` to ``[B, ..., E]``."""

    source: str
    module: nn.Module

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the product."""
        product_BLD: Tensor = self.module(numbers[self.source])
        return product_BLD

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the sum over the channels that come in."""
        *place, channel = index
        x_D = numbers[self.source][0][tuple(place)]
        row, bias = row_of(numbers, self.module, channel, len(x_D))
        factors = [numbers.vector(self.source, lambda d: (*place, d), x_D), row]
        text = f"Σ_d {self.source.split('.')[-1]}[d] · W[{channel}, d]{' + b' * bool(bias)}"
        return sum_of(text, most, factors, bias)


@dataclass(frozen=True)
class JoinedHeads(TensorNode):
    """``y_d = sum_hc mixed_hc W_d,hc + b_d``: all heads through the output matrix."""

    source: str
    module: nn.Module

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the product."""
        product_BLD: Tensor = self.module(numbers[self.source].transpose(1, 2).flatten(2))
        return product_BLD

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the sum over heads and their channels."""
        query, channel = index
        mixed_HC = numbers[self.source][0][:, query]
        width = mixed_HC.shape[1]
        row, bias = row_of(numbers, self.module, channel, mixed_HC.numel())
        factors = [numbers.vector(self.source, lambda i: (i // width, query, i % width), mixed_HC.flatten()), row]
        read = self.source.split(".")[-1]
        return sum_of(f"Σ_h Σ_c {read}[h, c] · W[{channel}, h c]{' + b' * bool(bias)}", most, factors, bias)


@dataclass(frozen=True)
class Added(TensorNode):
    """``y = f_1 x_1 + f_2 x_2 + ...``, tensors of one shape with a factor each."""

    parts: Sequence[tuple[str, float]]

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the sum, from left to right."""
        total = torch.zeros(())
        for source, factor in self.parts:
            part = numbers[source] if factor == 1 else factor * numbers[source]
            total = part if total.ndim == 0 else total + part
        return total

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the terms."""
        terms = [
            term(*([] if factor == 1 else [Operand("factor", factor)]), numbers.operand(source, index))
            for source, factor in self.parts
        ]
        return sum_of(" + ".join(one.split(".")[-1] for one, _ in self.parts), most, more=terms)


@dataclass(frozen=True)
class Product(TensorNode):
    """``y = a b``, number by number: a gate and what it lets through."""

    a: str
    b: str

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the product."""
        return numbers[self.a] * numbers[self.b]

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the one term."""
        one = term(numbers.operand(self.a, index), numbers.operand(self.b, index))
        return sum_of(" · ".join(key.split(".")[-1] for key in (self.a, self.b)), most, more=[one])


@dataclass(frozen=True)
class Switched(TensorNode):
    """``sigmoid(w x) y``: a branch that each token turns up or down.

    Attributes:
        gate: the linear map from the input to one number.
        source: the input.
        branch: what is turned.
    """

    gate: nn.Module
    source: str
    branch: str

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the branch, turned."""
        return torch.sigmoid(self.gate(numbers[self.source])) * numbers[self.branch]

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the product of the gate and the branch."""
        with torch.no_grad():
            gate = float(torch.sigmoid(self.gate(numbers[self.source][0][index[0]])))
        branch = numbers.operand(self.branch, index)
        filled = f"{written(gate)} · {written(branch.value)}"
        operands = [Operand("sigmoid(w · x)", gate), branch]
        return function_of("sigmoid(w · x) · branch", filled, gate * branch.value, operands)
