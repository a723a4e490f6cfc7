"""Nodes of what fills a slot: norms, activations, caps, scales, shifts; and chains of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.inspection.explain.formula import Formula, Index, Operand, function_of, sum_of, term, written
from orrery.inspection.explain.node import Numbers, TensorNode, named
from orrery.inspection.explain.sums import Added, Linear
from orrery.nn.elementwise import Activation, Clamp, FixedBias, LayerScale, Projection, SoftCap
from orrery.nn.norms import HeadNorm, LayerNorm, PerHeadNorm, PlainRMSNorm, RMSNorm
from orrery.nn.residual import Dropout, Identity, Scale
from orrery.nn.stochastic_depth import StochasticDepth

Nodes = dict[str, TensorNode]


def chain(nodes: Nodes, module: nn.Module, source: str, name: str) -> str:
    """Add the nodes of a slot and return the key of what comes out: ``name``, or the source where the slot is empty.

    Args:
        nodes: where they are added.
        module: what fills the slot.
        source: the key of what goes in.
        name: the key of what comes out; what stands between several parts is called ``name.1``, ``name.2``, ...
    """
    parts = list(steps(module))
    for number, part in enumerate(parts, 1):
        key = name if number == len(parts) else f"{name}.{number}"
        slot_nodes(part, nodes, source, key)
        source = key
    return source


def steps(module: nn.Module) -> Iterator[nn.Module]:
    """Yield the parts of a slot that change numbers outside training, in order."""
    if isinstance(module, nn.Sequential):
        for part in module:
            yield from steps(part)
    elif not isinstance(module, Identity | Dropout | StochasticDepth):
        yield module


@singledispatch
def slot_nodes(part: nn.Module, nodes: Nodes, source: str, key: str) -> None:
    """Add the node ``key`` of what a part of a slot makes of ``source``; of one that is not registered its numbers.

    ``@slot_nodes.register`` before a function of a part's class makes the part known.
    """
    nodes[key] = Unknown(source, part)


@slot_nodes.register
def _norm(
    part: LayerNorm | RMSNorm | PlainRMSNorm | HeadNorm | PerHeadNorm, nodes: Nodes, source: str, key: str
) -> None:
    nodes[f"{key}.scale"] = _Statistic(source, part)
    nodes[key] = Norm(source, f"{key}.scale", part)


@slot_nodes.register
def _projection(part: Projection, nodes: Nodes, source: str, key: str) -> None:
    nodes[key] = Linear(source, part.linear)


@slot_nodes.register
def _linear(part: nn.Linear, nodes: Nodes, source: str, key: str) -> None:
    nodes[key] = Linear(source, part)


@slot_nodes.register
def _scaled(part: Scale, nodes: Nodes, source: str, key: str) -> None:
    nodes[key] = Added(((source, part.factor),))


@slot_nodes.register
def _fixed_bias(part: FixedBias, nodes: Nodes, source: str, key: str) -> None:
    nodes[key] = ShiftedBy(source, part)


@slot_nodes.register
def _layer_scale(part: LayerScale, nodes: Nodes, source: str, key: str) -> None:
    nodes[key] = Scaled(source, part)


@slot_nodes.register
def _pointwise(part: Activation | SoftCap | Clamp, nodes: Nodes, source: str, key: str) -> None:
    nodes[key] = Pointwise(source, part, _called(part))


def _called(part: nn.Module) -> str:
    if isinstance(part, SoftCap):
        return f"{part.cap:g} · tanh(x / {part.cap:g})"
    if isinstance(part, Clamp):
        return f"min(max(x, {-part.bound:g}), {part.bound:g})"
    name = getattr(part.activation, "__name__", None) or "activation"  # a partial has no name
    return f"{name}(x)"


@dataclass(frozen=True)
class Pointwise(TensorNode):
    """``y = f(x)``, number by number.

    Attributes:
        source: the key of x.
        function: f.
        text: f with ``x`` for its argument.
    """

    source: str
    function: Callable[[Tensor], Tensor]
    text: str

    def compute(self, numbers: Numbers) -> Tensor:
        """Return f of the whole tensor."""
        return self.function(numbers[self.source])

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return f of one number."""
        x = numbers.operand(self.source, index)
        with torch.no_grad():
            value = float(self.function(torch.tensor(x.value, dtype=torch.float64)))
        name = self.source.split(".")[-1]
        text, filled = self.text.replace("(x", f"({name}"), self.text.replace("(x", f"({written(x.value)}")
        return function_of(text, filled, value, [x], abs(x.value))


@dataclass(frozen=True)
class ShiftedBy(TensorNode):
    """``y = x + b``."""

    source: str
    module: FixedBias

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the sum."""
        sum_BLD: Tensor = self.module(numbers[self.source])
        return sum_BLD

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the two terms."""
        shift = numbers.one_weight(self.module, "shift", (index[-1],), float(self.module.shift[index[-1]]))
        return sum_of("x + b", most, more=[term(numbers.operand(self.source, index)), term(shift)])


@dataclass(frozen=True)
class Scaled(TensorNode):
    """``y = g x``."""

    source: str
    module: LayerScale

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the product."""
        scaled_BLD: Tensor = self.module(numbers[self.source])
        return scaled_BLD

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the factor and the number."""
        gain = numbers.one_weight(self.module, "gain", (index[-1],), float(self.module.gain[index[-1]]))
        return sum_of("g x", most, more=[term(numbers.operand(self.source, index), gain)])


@dataclass(frozen=True)
class Unknown(TensorNode):
    """A part whose formula is not known here; its numbers are computed by the module itself."""

    source: str
    module: nn.Module

    def compute(self, numbers: Numbers) -> Tensor:
        """Return what the module gives."""
        given_BLD: Tensor = self.module(numbers[self.source])
        return given_BLD

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the number the module gives, not taken apart."""
        value = float(self.compute(numbers)[0][index])
        return function_of(f"{type(self.module).__name__}({self.source.split('.')[-1]})", "", value, [])


@dataclass(frozen=True)
class _Parts:
    """A norm as numbers: over ``width`` channels each, centred or not, with gains and biases by channel."""

    width: int
    eps: float
    centred: bool
    gain: Callable[[int], Operand | None]
    bias: Callable[[int], Operand | None]


def _parts(numbers: Numbers, module: nn.Module, channels: int) -> _Parts:
    if isinstance(module, HeadNorm):
        inner = _parts(numbers, module.norm, module.head_width)
        width = module.head_width
        return _Parts(width, inner.eps, inner.centred, lambda e: inner.gain(e % width), lambda e: inner.bias(e % width))
    if isinstance(module, PerHeadNorm):
        gains, (width,) = module.gains, module.shape
        return _Parts(
            width,
            module.eps,
            True,
            lambda e: numbers.one_weight(gains, str(e // width), (e % width,), float(gains[e // width][e % width])),
            lambda e: None,
        )
    if isinstance(module, PlainRMSNorm):
        return _Parts(channels, module.eps, False, lambda e: None, lambda e: None)
    assert isinstance(module, LayerNorm | RMSNorm)
    bias = module.bias if isinstance(module, LayerNorm) else None
    weight = module.weight
    return _Parts(
        channels,
        module.eps,
        isinstance(module, LayerNorm),
        lambda e: (
            None if weight is None else numbers.one_weight(module, "weight", (e,), module.offset + float(weight[e]))
        ),
        lambda e: None if bias is None else numbers.one_weight(module, "bias", (e,), float(bias[e])),
    )


@dataclass(frozen=True)
class _Statistic(TensorNode):
    """What a norm divides by: ``sqrt(mean((x - m)^2) + eps)``, ``[B, ..., groups]``; m is the mean, or zero."""

    source: str
    module: nn.Module

    def compute(self, numbers: Numbers) -> Tensor:
        """Return one number a vector, in float64."""
        x = numbers[self.source].double()
        parts = _parts(numbers, self.module, x.shape[-1])
        return _scale(x.unflatten(-1, (-1, parts.width)), parts)[..., 0]

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the root of the mean square, with the largest squares."""
        *place, group = index
        x_D = numbers[self.source][0][tuple(place)].double()
        parts = _parts(numbers, self.module, len(x_D))
        own_C = x_D.unflatten(-1, (-1, parts.width))[group]
        mean = float(own_C.mean()) if parts.centred else 0.0
        square_C = (own_C - mean).square()
        order = square_C.argsort(descending=True).tolist()[:most]
        operands = [numbers.operand(self.source, (*place, group * parts.width + c)) for c in order]
        value = float((square_C.mean() + parts.eps).sqrt())
        x = self.source.split(".")[-1]
        text = f"√(mean_d ({x}[d]{' - mean' * parts.centred})² + ε)"
        filled = f"√({written(float(square_C.mean()))} + {parts.eps:g})"
        extra = [Operand("mean", mean)] if parts.centred else []
        return function_of(text, filled, value, [*extra, *operands], value)


def _scale(x: Float[Tensor, "*B C"], parts: _Parts) -> Float[Tensor, "*B 1"]:
    centre = x.mean(-1, keepdim=True) if parts.centred else 0.0
    return ((x - centre).square().mean(-1, keepdim=True) + parts.eps).sqrt()


@dataclass(frozen=True)
class Norm(TensorNode):
    """``y = (x - mean) / scale * gain + bias``; RMSNorm takes no mean.

    Attributes:
        source: the key of x.
        scale: the key of what it divides by.
        module: the norm.
    """

    source: str
    scale: str
    module: nn.Module

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the normed vectors."""
        normed_BLD: Tensor = self.module(numbers[self.source])
        return normed_BLD

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the formula of one channel."""
        *place, channel = index
        x_D = numbers[self.source][0][tuple(place)].double()
        parts = _parts(numbers, self.module, len(x_D))
        group = channel // parts.width
        own_C = x_D.unflatten(-1, (-1, parts.width))[group]
        x, scale = numbers.operand(self.source, index), numbers.operand(self.scale, (*place, group))
        mean = [Operand(f"mean of {named(self.source, tuple(place))}", float(own_C.mean()))] if parts.centred else []
        gain = [one for one in (parts.gain(channel),) if one is not None]
        bias = [one for one in (parts.bias(channel),) if one is not None]
        value = (x.value - sum(one.value for one in mean)) / scale.value
        for one in gain:
            value *= one.value
        value += sum(one.value for one in bias)
        return function_of(
            _norm_text([self.source.split(".")[-1], *["mean"] * len(mean)], "scale", ["gain"] * len(gain), bias),
            _norm_text(
                [written(one.value) for one in (x, *mean)], written(scale.value), _numbers(gain), _numbers(bias)
            ),
            value,
            [x, *mean, scale, *gain, *bias],
            abs(value),
        )


def _numbers(operands: Sequence[Operand]) -> list[str]:
    return [written(one.value) for one in operands]


def _norm_text(top: Sequence[str], scale: str, gain: Sequence[str], bias: Sequence[object]) -> str:
    above = f"({' - '.join(top)})" if len(top) > 1 else top[0]
    shift = [str(one) if isinstance(one, str) else "bias" for one in bias]
    return " + ".join([" · ".join([f"{above} / {scale}", *gain]), *shift])
