"""A layer that nobody has described: its operations are recorded, and each of its numbers follows from theirs.

No operation has a formula of its own here. What a number y depends on is where its gradient is not zero. It is a sum
where ``sum_i x_i dy/dx_i = y``, a sum of products where it is one of the numbers of two tensors in pairs, and else a
function of all of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from orrery.inspection.explain.formula import (
    Formula,
    FormulaTerm,
    Index,
    Operand,
    Vector,
    function_of,
    given,
    sum_of,
    term,
    written,
)
from orrery.inspection.explain.node import Numbers, TensorNode, named
from orrery.inspection.operations import OperationWatch

LONGEST = 256
"""Operations of a layer that is taken apart; a recurrence that steps from token to token has more."""
EXACT = 1e-9
"""By which a sum in float64 may miss its number, as a share of the size of its terms."""


@dataclass(frozen=True)
class TensorRead:
    """A tensor that an operation reads.

    Attributes:
        value: the tensor, without an axis of rows of its own.
        key: of the node that has made it, or of what the layer reads; nothing for a weight or a constant.
        parameter: the path of the weight that it is.
        rows: how many axes stand before those that a key's index counts.
    """

    value: Tensor
    key: str | None = None
    parameter: str | None = None
    rows: int = 0

    def label(self, numbers: Numbers) -> str:
        """Return how it reads in a formula: a view as what it is a view of."""
        node = numbers.nodes.get(self.key or "")
        if isinstance(node, RecordedOperation) and (viewed := node.viewed) is not None:
            return viewed.label(numbers)
        if self.parameter is not None:
            return ".".join(self.parameter.split(".")[-2:])
        return "constant" if self.key is None else self.key.split(".")[-1]

    def operand(self, numbers: Numbers, place: Index) -> Operand:
        """Return one of its numbers; one that was only moved is the number that it was before."""
        node = numbers.nodes.get(self.key or "")
        if isinstance(node, RecordedOperation) and (origin := node.origin(place)) is not None:
            read, place = origin
            return read.operand(numbers, place)
        value = float(self.value[place])
        if self.parameter is not None:
            return Operand(named(self.parameter, place, 2), value, index=place, parameter=self.parameter)
        if self.key is None:
            return Operand("constant", value)
        return Operand(named(self.key, place[self.rows :]), value, self.key, place[self.rows :])


@dataclass(frozen=True)
class Dependence:
    """What a number depends on in one tensor: places there, its numbers and the gradients to them."""

    read: TensorRead
    places: list[Index]
    x_N: Tensor
    gradient_N: Tensor

    @property
    def share(self) -> float:
        """``sum_i x_i dy/dx_i``."""
        return float(self.x_N @ self.gradient_N)

    def vector(self, numbers: Numbers) -> Vector:
        """Return the numbers as factors."""
        return Vector(self.x_N, lambda i, value: self.read.operand(numbers, self.places[i]))


@dataclass(frozen=True)
class RecordedOperation(TensorNode):
    """One operation of a recorded layer, ``[1, ...]`` with all of its own axes behind the first.

    Attributes:
        name: torch's.
        run: carries it out on other tensors in the place of ``reads``.
        reads: what it has read.
        out: what it has made.
    """

    name: str
    run: Callable[[Sequence[Tensor]], Tensor]
    reads: tuple[TensorRead, ...]
    out: Tensor

    def compute(self, numbers: Numbers) -> Tensor:
        """Return what was recorded."""
        return self.out[None]

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the number as a sum, a sum of products, or a function of what it depends on."""
        value, found = self._depends(index)
        size = sum(float((one.x_N * one.gradient_N).abs().sum()) for one in found)
        if abs(sum(one.share for one in found) - value) <= EXACT * max(1.0, size):
            return self._sum(numbers, found, most)
        for a, b in ((a, b) for a in found for b in found if a is not b and len(a.places) == len(b.places)):
            rest = [one for one in found if one is not a and one is not b]
            if abs(float(a.x_N @ b.x_N) + sum(one.share for one in rest) - value) <= EXACT * max(1.0, size):
                terms = [one for each in rest for one in _terms(numbers, each)]
                text = " + ".join(
                    [
                        f"Σ_i {a.read.label(numbers)}[i] · {b.read.label(numbers)}[i]",
                        *(one.read.label(numbers) for one in rest),
                    ]
                )
                return sum_of(text, most, [a.vector(numbers), b.vector(numbers)], terms)
        order = sorted(
            ((one, n) for one in found for n in range(len(one.places))),
            key=lambda each: -abs(float(each[0].x_N[each[1]] * each[0].gradient_N[each[1]])),
        )
        operands = [one.read.operand(numbers, one.places[n]) for one, n in order[:most]]
        filled = f"{self.name}({', '.join(written(one.value) for one in operands)}{', ...' * (len(order) > most)})"
        text = f"{self.name}({', '.join(one.read.label(numbers) for one in found)})"
        return function_of(text, filled, value, operands, max(abs(value), size))

    @property
    def viewed(self) -> TensorRead | None:
        """What the result is a view of, if it is one."""
        own = self.out.untyped_storage()._cdata
        return next((read for read in self.reads if read.value.untyped_storage()._cdata == own), None)

    def origin(self, place: Index) -> tuple[TensorRead, Index] | None:
        """Return where a number stood before, if the operation has only moved it."""
        if (viewed := self.viewed) is not None:
            there = _place_in(viewed.value, _offset(self.out, place))
            return None if there is None else (viewed, there)
        value, found = self._depends(place)
        if len(found) != 1 or len(found[0].places) != 1:
            return None
        (one,) = found
        moved = float(one.gradient_N[0]) == 1 and float(one.x_N[0]) == value
        return (one.read, one.places[0]) if moved and self._moves(place, one) else None

    def _moves(self, place: Index, one: Dependence) -> bool:
        """Say whether the number there would also be the one here if it were another."""
        others = [torch.full_like(each.value.double(), -2.5) if each is one.read else each.value for each in self.reads]
        return float(self.run(_doubles(others))[place]) == -2.5

    def _sum(self, numbers: Numbers, found: Sequence[Dependence], most: int) -> Formula:
        terms = [one for each in found for one in _terms(numbers, each, most)]
        left = sum(len(each.places) for each in found) - len(terms)
        if left:
            x_N = torch.cat([each.x_N * each.gradient_N for each in found])
            places = [(each, n) for each in found for n in range(len(each.places))]
            return sum_of(
                f"Σ {self.name}({', '.join(each.read.label(numbers) for each in found)})",
                most,
                [Vector(x_N, lambda i, value: places[i][0].read.operand(numbers, places[i][0].places[places[i][1]]))],
            )
        return sum_of(f"{self.name}({', '.join(each.read.label(numbers) for each in found)})", most, more=terms)

    def _depends(self, place: Index) -> tuple[float, list[Dependence]]:
        """Return the number in float64, and what it depends on."""
        reads = [one.value for one in self.reads]
        value, gradients = _gradients(self.run, _doubles(reads), place)
        likely = [torch.rand_like(one.double()) + 0.5 if one.is_floating_point() else one for one in reads]
        _, usual = _gradients(self.run, likely, place)
        found = []
        for read, gradient, other in zip(self.reads, gradients, usual, strict=True):
            if gradient is None or other is None:
                continue
            at = ((gradient != 0) | (other != 0)).nonzero()
            if len(at):
                spots = tuple(at.T)
                places = [tuple(row) for row in at.tolist()]
                x_N = read.value.double()[spots].reshape(-1)
                found.append(Dependence(read, places, x_N, gradient[spots].reshape(-1)))
        return value, found


def _offset(tensor: Tensor, place: Index) -> int:
    """Return where in its storage a number of a tensor lies."""
    return int(tensor.storage_offset()) + sum(n * step for n, step in zip(place, tensor.stride(), strict=True))


def _place_in(tensor: Tensor, offset: int) -> Index | None:
    """Return the place in a tensor of a number that lies somewhere in its storage; nothing where it is not in there."""
    rest, steps, found = offset - int(tensor.storage_offset()), tensor.stride(), [0] * tensor.dim()
    for axis in sorted(range(tensor.dim()), key=lambda axis: -steps[axis]):
        if steps[axis]:
            found[axis], rest = divmod(rest, steps[axis])
    inside = rest == 0 and all(0 <= n < size for n, size in zip(found, tensor.shape, strict=True))
    return tuple(found) if inside else None


def _terms(numbers: Numbers, each: Dependence, most: int | None = None) -> Iterator[FormulaTerm]:
    for n in range(len(each.places) if most is None else min(most, len(each.places))):
        factor = float(each.gradient_N[n])
        own = each.read.operand(numbers, each.places[n])
        yield term(*([] if factor == 1 else [Operand("factor", factor)]), own)


def _doubles(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [one.double() if one.is_floating_point() else one for one in tensors]


def _gradients(
    run: Callable[[Sequence[Tensor]], Tensor], tensors: Sequence[Tensor], place: Index
) -> tuple[float, list[Tensor | None]]:
    """Return a number of an operation and its gradient to each tensor."""
    with torch.enable_grad():
        given_to = [one.detach().clone().requires_grad_(one.is_floating_point()) for one in tensors]
        y = run(given_to)[place]
        leaves = [one for one in given_to if one.requires_grad]
        if not y.requires_grad:
            return float(y), [None] * len(tensors)
        found = iter(torch.autograd.grad(y, leaves, allow_unused=True))
        return float(y.detach()), [next(found) if one.requires_grad else None for one in given_to]


@dataclass(frozen=True)
class RecordedLayer(TensorNode):
    """What a layer adds that nobody has described; it is recorded when it is first asked about.

    Attributes:
        key: its own.
        source: the key of what the layer reads.
        act: the layer, in this pass.
        modules: whose weights it has.
        name: what it is called.
    """

    key: str
    source: str
    act: Callable[[Tensor], Tensor]
    modules: tuple[nn.Module, ...]
    name: str

    def compute(self, numbers: Numbers) -> Tensor:
        """Return what the layer gives."""
        return self.act(numbers[self.source])

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the formula of the layer's last operation, or only the number where it is not taken apart."""
        last = self.record(numbers)
        if last is None:
            return given(f"what {self.name} makes of its input", numbers.at(self.key, index))
        node, place = numbers.nodes[last], (0, *index)
        while isinstance(node, RecordedOperation) and (origin := node.origin(place)) is not None:
            read, before = origin
            if read.key not in numbers.nodes or read.key == self.source:
                break
            node, place = numbers.nodes[read.key], before
        return node.explain(numbers, place, most)

    def record(self, numbers: Numbers) -> str | None:
        """Add a node for each operation, once, and return the key of the last; nothing where it is not taken apart."""
        if self.key not in numbers.ends:
            numbers.ends[self.key] = self._record(numbers, numbers[self.source])
        return numbers.ends[self.key]

    def _record(self, numbers: Numbers, x: Tensor) -> str | None:
        seen: list[tuple[Any, Any, Any, Any]] = []
        with torch.no_grad(), OperationWatch(lambda *each: seen.append(each)):
            out = self.act(x)
        if len(seen) > LONGEST or not all(_is_plain(func, made) for func, _, _, made in seen):
            return None
        known = {id(x): TensorRead(x, self.source, rows=1)}
        for module in (part for one in self.modules for part in one.modules()):
            for name, weight in module.named_parameters(recurse=False):
                known[id(weight)] = TensorRead(weight.detach(), parameter=numbers.path(module, name))
        for count, (func, args, kwargs, made) in enumerate(seen, 1):
            self._add(numbers, known, f"{func._overloadpacket.__name__}_{count}", (func, args, kwargs, made))
        return known[id(out)].key if id(out) in known else None

    def _add(self, numbers: Numbers, known: dict[int, TensorRead], name: str, one: tuple[Any, Any, Any, Any]) -> None:
        func, args, kwargs, made = one
        leaves, tree = tree_flatten((args, kwargs))
        spots = [n for n, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        reads = tuple(known.get(id(leaves[n]), TensorRead(leaves[n].detach())) for n in spots)
        if all(read.key is None and read.parameter is None for read in reads):
            return  # a constant
        for number, out in enumerate(tree_leaves(made)):
            if not isinstance(out, Tensor):
                continue
            key = f"{self.key}.{name}" + f"_{number}" * (number > 0)
            known[id(out)] = TensorRead(out.detach(), key)
            numbers.nodes[key] = RecordedOperation(
                func._overloadpacket.__name__, _again(func, leaves, tree, spots, number), reads, out.detach()
            )


def _is_plain(func: Any, made: Any) -> bool:
    """Say whether an operation writes over nothing, and makes no complex numbers."""
    return not func._schema.is_mutable and not any(
        isinstance(one, Tensor) and one.is_complex() for one in tree_leaves(made)
    )


def _again(func: Any, leaves: list[Any], tree: Any, spots: Sequence[int], number: int) -> Callable[..., Tensor]:
    """Return what carries an operation out on other tensors."""

    def run(tensors: Sequence[Tensor]) -> Tensor:
        own = list(leaves)
        for spot, tensor in zip(spots, tensors, strict=True):
            own[spot] = tensor
        args, kwargs = tree_unflatten(own, tree)
        found: Tensor = tree_leaves(func(*args, **kwargs))[number]
        return found

    return run
