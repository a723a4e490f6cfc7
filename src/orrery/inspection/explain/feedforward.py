"""The nodes of feed-forward layers, by the class of the layer."""

from dataclasses import dataclass

import torch
from torch import Tensor

from orrery.inspection.explain.formula import Formula, Index, Operand, sum_of, term
from orrery.inspection.explain.node import Numbers, TensorNode
from orrery.inspection.explain.slots import Nodes, Pointwise, chain
from orrery.inspection.explain.sums import Linear, Product
from orrery.nn.activations import ACTIVATIONS
from orrery.nn.attention.kernels import eager
from orrery.nn.cache.contract import UNCACHED
from orrery.nn.context import Context
from orrery.nn.feedforward.clamped import ClampedGatedMLP
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.feedforward.moe import MoE


def mlp(nodes: Nodes, path: str, source: str, module: MLP) -> str:
    """Add ``down(act(up(x)))`` and return the key of its output."""
    nodes[f"{path}.up"] = Linear(source, module.up)
    nodes[f"{path}.hidden"] = Pointwise(f"{path}.up", module.activation, f"{name_of(module.activation)}(x)")
    nodes[f"{path}.down"] = Linear(f"{path}.hidden", module.down)
    return f"{path}.down"


def gated(nodes: Nodes, path: str, source: str, module: GatedMLP) -> str:
    """Add ``down(act(before(gate(x))) up(x))`` and return the key of its output."""
    nodes[f"{path}.gate_in"] = Linear(source, module.gate)
    gate = chain(nodes, module.before, f"{path}.gate_in", f"{path}.gate_before")
    nodes[f"{path}.gate"] = Pointwise(gate, module.activation, f"{name_of(module.activation)}(x)")
    nodes[f"{path}.up"] = Linear(source, module.up)
    nodes[f"{path}.hidden"] = Product(f"{path}.gate", f"{path}.up")
    nodes[f"{path}.down"] = Linear(f"{path}.hidden", module.down)
    return f"{path}.down"


def clamped(nodes: Nodes, path: str, source: str, module: ClampedGatedMLP) -> str:
    """Add the clamped gated layer of gpt-oss and return the key of its output."""
    limit, slope = module.limit, module.slope

    def gate(x: Tensor) -> Tensor:
        low = x.clamp(max=limit)
        return low * torch.sigmoid(slope * low)

    nodes[f"{path}.gate_in"] = Linear(source, module.gate)
    nodes[f"{path}.gate"] = Pointwise(f"{path}.gate_in", gate, f"g · sigmoid({slope:g} g) with g = min(x, {limit:g})")
    nodes[f"{path}.up_in"] = Linear(source, module.up)
    text = f"clip(x, -{limit:g}, {limit:g}) + 1"
    nodes[f"{path}.up"] = Pointwise(f"{path}.up_in", lambda x: x.clamp(-limit, limit) + 1, text)
    nodes[f"{path}.hidden"] = Product(f"{path}.gate", f"{path}.up")
    nodes[f"{path}.down"] = Linear(f"{path}.hidden", module.down)
    return f"{path}.down"


def name_of(activation: object) -> str:
    """Return the name of an activation."""
    return next((name for name, one in ACTIVATIONS.items() if one is activation), "activation")


@dataclass(frozen=True)
class Experts(TensorNode):
    """``sum_e weight_e expert_e(x) + sum_s shared_s(x)``; the inside of a chosen expert is not taken apart.

    Attributes:
        source: the key of x.
        module: the mixture.
        shared: the keys of the answers of the shared experts; nothing where one cannot be taken apart.
    """

    source: str
    module: MoE
    shared: tuple[str | None, ...]

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the sum for every token."""
        x_BLD = numbers[self.source]
        routing = self.module.router(x_BLD.flatten(0, 1))
        mixed_BLD = self.module.mix(x_BLD.flatten(0, 1), routing, self._quiet()).view_as(x_BLD)
        return mixed_BLD + sum(self._shared(numbers, number) for number in range(len(self.shared)))

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the weights and answers of the experts that one token was sent to."""
        place, channel = index
        x_D = numbers[self.source][0, place]
        routing = self.module.router(x_D[None])
        terms = []
        for number, weight in zip(routing.chosen_NE[0].tolist(), routing.weights_NE[0].tolist(), strict=True):
            answer = float(self.module.experts[number](x_D[None, None], self._quiet())[0, 0, channel])
            name = f"expert {number}"
            terms.append(term(Operand(f"weight of {name}", weight), Operand(f"{name}(input)[{channel}]", answer)))
        for number, key in enumerate(self.shared):
            if key is not None:
                terms.append(term(numbers.operand(key, index)))
            else:
                value = float(self._shared(numbers, number)[0][index])
                terms.append(term(Operand(f"shared {number}(input)[{channel}]", value)))
        return sum_of("Σ_e weight_e · expert_e(input), over the chosen and the shared experts", most, more=terms)

    def _shared(self, numbers: Numbers, number: int) -> Tensor:
        key = self.shared[number]
        if key is not None:
            return numbers[key]
        given_BLD: Tensor = self.module.shared[number](numbers[self.source], self._quiet())
        return given_BLD

    def _quiet(self) -> Context:
        """Return a context for layers that ask it for nothing but a tap."""
        return Context(positions={}, masks={}, cache=UNCACHED, kernel=eager)
