"""A formula with its real numbers: what an explanation is made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Index = tuple[int, ...]


@dataclass(frozen=True)
class Operand:
    """One number that stands in a formula.

    Attributes:
        name: how it reads there, such as ``input[3, 17]``.
        value: the number.
        key: of the tensor that it is one of, where that can be explained in turn.
        index: its place there, after the axis of rows.
        parameter: the path of the weight that it is one of, where it is one.
    """

    name: str
    value: float
    key: str | None = None
    index: Index = ()
    parameter: str | None = None


@dataclass(frozen=True)
class FormulaTerm:
    """What is added: the product of its factors."""

    factors: tuple[Operand, ...]
    value: float


@dataclass(frozen=True)
class Formula:
    """A number as the sum of terms, or as a function of its operands.

    Attributes:
        text: the formula with names.
        value: what it gives, in float64.
        terms: the largest; of a function each has one factor, and they are not added.
        others: how many more terms there are.
        others_sum: what those sum to.
        size: the sum of the sizes of all terms, against which an error is measured.
        kind: ``sum``, ``function``, or ``given`` where no formula is known.
        filled: a function with its numbers.
    """

    text: str
    value: float
    terms: Sequence[FormulaTerm] = ()
    others: int = 0
    others_sum: float = 0.0
    size: float = 1.0
    kind: Literal["sum", "function", "given"] = "sum"
    filled: str = ""


@dataclass(frozen=True)
class Vector:
    """Many factors, one a term: their values, and what each of them is.

    Attributes:
        values: ``[N]``.
        operand: from a place and its value to the operand.
    """

    values: Float[Tensor, "N"]
    operand: Callable[[int, float], Operand]

    def at(self, place: int) -> Operand:
        """Return one of the factors."""
        return self.operand(place, float(self.values[place]))


def term(*factors: Operand) -> FormulaTerm:
    """Return the product of some numbers."""
    value = 1.0
    for factor in factors:
        value *= factor.value
    return FormulaTerm(factors, value)


def sum_of(text: str, most: int, products: Sequence[Vector] = (), more: Sequence[FormulaTerm] = ()) -> Formula:
    """Return a sum of products: ``sum_i a_i b_i ... + more``, its largest terms first.

    Args:
        text: the formula with names.
        most: how many terms are named.
        products: the factors, all of one length; the i-th term is the product of their i-th numbers.
        more: terms beside them.
    """
    product_N = torch.ones(len(products[0].values) if products else 0, dtype=torch.float64)
    for factor in products:
        product_N = product_N * factor.values.double().cpu()
    extra_N = torch.tensor([one.value for one in more], dtype=torch.float64)
    all_N = torch.cat([product_N, extra_N])
    order = all_N.abs().nan_to_num(0.0).argsort(descending=True, stable=True).tolist()
    named = [
        FormulaTerm(tuple(factor.at(place) for factor in products), float(product_N[place]))
        if place < len(product_N)
        else more[place - len(product_N)]
        for place in order[:most]
    ]
    rest_N = all_N[order[most:]]
    size = float(all_N.abs().sum())
    return Formula(text, float(all_N.sum()), named, len(rest_N), float(rest_N.sum()), max(1.0, size))


def function_of(text: str, filled: str, value: float, operands: Sequence[Operand], size: float = 1.0) -> Formula:
    """Return a function of a few numbers."""
    terms = [FormulaTerm((one,), one.value) for one in operands]
    return Formula(text, value, terms, size=max(1.0, size), kind="function", filled=filled)


def given(text: str, value: float) -> Formula:
    """Return a number that has no formula here; ``text`` says why."""
    return Formula(text, value, kind="given")


def written(value: float) -> str:
    """Return a number as it stands in a filled formula."""
    return f"{value:.4g}"
