"""Nodes of recurrences: what stood before, what gates read, and how a state follows from gates."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from orrery.inspection.explain.formula import Formula, Index, Operand, Vector, function_of, given, sum_of, term, written
from orrery.inspection.explain.node import Numbers, TensorNode, named
from orrery.inspection.explain.slots import Nodes, Pointwise
from orrery.inspection.explain.sums import Product


@dataclass(frozen=True)
class Before(TensorNode):
    """``x_{t-1}``, ``[B, L, D]``: zeros before the first token, or what another tensor has at a place.

    Attributes:
        source: the key of x.
        first: the key of what stands before the first token, ``[B, P, D]``.
        place: where it stands there.
    """

    source: str
    first: str | None = None
    place: int = 0

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the tensor of the token before each."""
        x_BLD = numbers[self.source]
        return torch.cat([self.start(numbers, x_BLD), x_BLD[:, :-1]], 1)

    def start(self, numbers: Numbers, like: Tensor) -> Tensor:
        """Return what stands before the first token."""
        if self.first is None:
            return like.new_zeros(len(like), 1, like.shape[-1])
        return numbers[self.first][:, self.place : self.place + 1]

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the number of the token before."""
        place, channel = index
        if place:
            return sum_of("of the token before", most, more=[term(numbers.operand(self.source, (place - 1, channel)))])
        if self.first is None:
            return given("before the first token stands zero", 0.0)
        return sum_of("what it begins with", most, more=[term(numbers.operand(self.first, (self.place, channel)))])


@dataclass(frozen=True)
class MatrixPart:
    """What one matrix gives to a sum: some of its rows, some of its columns.

    Attributes:
        source: the key of what it multiplies, ``[B, L, D]``.
        owner: the module whose parameter it is.
        weight: the name of the matrix there.
        bias: the name of the bias, where it is added.
        row: the first row.
        column: the first column.
    """

    source: str
    owner: nn.Module
    weight: str = "weight"
    bias: str | None = "bias"
    row: int = 0
    column: int = 0


@dataclass(frozen=True)
class Affine(TensorNode):
    """``y_e = sum over parts of sum_d x_d W_ed + b_e``: what several inputs give to one gate, ``[B, L, E]``."""

    parts: Sequence[MatrixPart]
    width: int

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the sum."""
        total = torch.zeros(())
        for part in self.parts:
            x_BLD = numbers[part.source]
            rows, columns = slice(part.row, part.row + self.width), slice(part.column, part.column + x_BLD.shape[-1])
            bias_E = self._bias(part)
            bias_E = None if bias_E is None else bias_E[rows]
            given_BLE = nn.functional.linear(x_BLD, getattr(part.owner, part.weight)[rows, columns], bias_E)
            total = given_BLE if total.ndim == 0 else total + given_BLE
        return total

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the sum over all channels of all inputs, and the biases."""
        *place, channel = index
        values, weights, operands, rows, more, texts = [], [], [], [], [], []
        for part in self.parts:
            x_D, row = numbers[part.source][0][tuple(place)], part.row + channel
            matrix = getattr(part.owner, part.weight).detach()
            values.append(x_D)
            weights.append(matrix[row, part.column : part.column + len(x_D)])
            path = numbers.path(part.owner, part.weight)
            for d in range(len(x_D)):
                operands.append((part.source, (*place, d)))
                rows.append((path, (row, part.column + d)))
            texts.append(f"Σ_d {part.source.split('.')[-1]}[d] · {part.weight}[{row}, d]")
            bias = self._bias(part)
            if bias is not None and part.bias is not None:
                more.append(term(numbers.one_weight(part.owner, part.bias, (row,), float(bias[row]))))
        factors = [
            Vector(torch.cat(values), lambda i, value: Operand(named(*operands[i]), value, *operands[i])),
            Vector(
                torch.cat(weights),
                lambda i, value: Operand(named(*rows[i], 2), value, index=rows[i][1], parameter=rows[i][0]),
            ),
        ]
        return sum_of(" + ".join(texts) + " + b" * len(more), most, factors, more)

    def _bias(self, part: MatrixPart) -> Tensor | None:
        bias_D: Tensor | None = None if part.bias is None else getattr(part.owner, part.bias, None)
        return None if bias_D is None else bias_D.detach()


@dataclass(frozen=True)
class LstmCell(TensorNode):
    """``c_t = f_t c_{t-1} + i_t g_t`` of an LSTM.

    Attributes:
        forget: the key of f, and so on.
        before: the key of ``c_{t-1}``.
        enters: the key of i.
        candidate: the key of g.
    """

    forget: str
    before: str
    enters: str
    candidate: str

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the cells."""
        return numbers[self.forget] * numbers[self.before] + numbers[self.enters] * numbers[self.candidate]

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the two products."""
        pairs = ((self.forget, self.before), (self.enters, self.candidate))
        terms = [term(*(numbers.operand(key, index) for key in pair)) for pair in pairs]
        return sum_of("forget_gate · cell before + input_gate · candidate", most, more=terms)


@dataclass(frozen=True)
class Scaled(TensorNode):
    """``y = a + r b``: what the input gives to a candidate, and what the reset gate lets through of the state."""

    a: str
    gate: str
    b: str

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the sum."""
        return numbers[self.a] + numbers[self.gate] * numbers[self.b]

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the two terms."""
        a, gate, b = (numbers.operand(key, index) for key in (self.a, self.gate, self.b))
        return sum_of("of the input + reset_gate · of the state", most, more=[term(a), term(gate, b)])


@dataclass(frozen=True)
class Blend(TensorNode):
    """``h_t = (1 - z_t) n_t + z_t h_{t-1}`` of a GRU; computed step by step where it was not recorded.

    Attributes:
        gate: the key of z.
        candidate: the key of n.
        before: the key of ``h_{t-1}``, which the state itself stands behind.
        start: what stands before the first token.
    """

    gate: str
    candidate: str
    before: str
    start: Before

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the states."""
        z_BLD, n_BLD = numbers[self.gate], numbers[self.candidate]
        h_BD, states = self.start.start(numbers, z_BLD)[:, 0], []
        for z_BD, n_BD in zip(z_BLD.unbind(1), n_BLD.unbind(1), strict=True):
            h_BD = (1 - z_BD) * n_BD + z_BD * h_BD
            states.append(h_BD)
        return torch.stack(states, 1)

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the two products."""
        z, n, h = (numbers.operand(key, index) for key in (self.gate, self.candidate, self.before))
        rest = Operand(f"1 - {z.name}", 1 - z.value, z.key, z.index)
        return sum_of(
            "(1 - update_gate) · candidate + update_gate · state before", most, more=[term(rest, n), term(z, h)]
        )


@dataclass(frozen=True)
class Maxout(TensorNode):
    """``y_d = max(x_2d, x_2d+1)`` (Goodfellow et al. 2013)."""

    source: str

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the greater of each pair."""
        return numbers[self.source].unflatten(-1, (-1, 2)).amax(-1)

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the two of a pair."""
        *place, channel = index
        pair = [numbers.operand(self.source, (*place, 2 * channel + i)) for i in range(2)]
        filled = f"max({', '.join(written(one.value) for one in pair)})"
        return function_of("the greater of two", filled, max(one.value for one in pair), pair)


def lstm_nodes(
    nodes: Nodes, path: str, parts: Sequence[MatrixPart], before: tuple[str, Before], layer: str = ""
) -> str:
    """Add the nodes of an LSTM layer and return the key of h.

    Args:
        nodes: where they are added.
        path: of the recurrence.
        parts: what its gates read; the matrices stack i, f, g, o.
        before: the key of c before each token, and what that is.
        layer: what stands behind the names of its gates, such as ``.0``.
    """
    width = _rows(parts[0]) // 4
    names = ("input_gate", "forget_gate", "candidate", "output_gate")
    for number, name in enumerate(names):
        of = tuple(_from_row(part, number * width) for part in parts)
        _gate(nodes, f"{path}.{name}{layer}", of, width, "tanh" if name == "candidate" else "sigmoid")
    i, f, g, o = (f"{path}.{name}{layer}" for name in names)
    cell, old = f"{path}.cell{layer}", before[0]
    nodes[old] = before[1]
    nodes[cell] = LstmCell(f, old, i, g)
    nodes[f"{cell}_tanh"] = Pointwise(cell, torch.tanh, "tanh(x)")
    h = f"{path}.h{layer}"
    nodes[h] = Product(o, f"{cell}_tanh")
    return h


def gru_nodes(
    nodes: Nodes, path: str, new: Sequence[MatrixPart], old: Sequence[MatrixPart], before: str, start: Before, h: str
) -> None:
    """Add the nodes of a GRU, whose state has the key ``h``.

    Args:
        nodes: where they are added.
        path: of the recurrence.
        new: what the gates read of the input; the matrices stack r, z, n.
        old: what they read of the state before.
        before: the key of the state before each token.
        start: what it is.
        h: the key of the state.
    """
    width = _rows(new[0]) // 3
    for number, name in enumerate(("reset_gate", "update_gate")):
        of = tuple(_from_row(part, number * width) for part in (*new, *old))
        _gate(nodes, f"{path}.{name}", of, width, "sigmoid")
    for name, parts in (("of_input", new), ("of_state", old)):
        nodes[f"{path}.{name}"] = Affine(tuple(_from_row(part, 2 * width) for part in parts), width)
    nodes[f"{path}.candidate_in"] = Scaled(f"{path}.of_input", f"{path}.reset_gate", f"{path}.of_state")
    nodes[f"{path}.candidate"] = Pointwise(f"{path}.candidate_in", torch.tanh, "tanh(x)")
    nodes[before] = start
    nodes[h] = Blend(f"{path}.update_gate", f"{path}.candidate", before, start)


def engine_parts(engine: nn.RNNBase, x: str, h: str) -> tuple[MatrixPart, MatrixPart]:
    """Return what the gates of torch's engine read of its input and of its state."""
    return MatrixPart(x, engine, "weight_ih_l0", "bias_ih_l0"), MatrixPart(h, engine, "weight_hh_l0", "bias_hh_l0")


def _gate(nodes: Nodes, key: str, parts: Sequence[MatrixPart], width: int, name: str) -> None:
    nodes[f"{key}_in"] = Affine(parts, width)
    nodes[key] = Pointwise(f"{key}_in", getattr(torch, name), f"{name}(x)")


def _rows(part: MatrixPart) -> int:
    return len(getattr(part.owner, part.weight))


def _from_row(part: MatrixPart, row: int) -> MatrixPart:
    return MatrixPart(part.source, part.owner, part.weight, part.bias, row, part.column)
