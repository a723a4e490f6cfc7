"""Nodes of recurrent decoders: how their steps score the source, read what they found, and what they give."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from orrery.inspection.explain.attention import Mixed, Pattern
from orrery.inspection.explain.formula import Formula, Index, function_of, given, sum_of, written
from orrery.inspection.explain.node import Numbers, Same, TensorNode
from orrery.inspection.explain.recurrent import Affine, Before, MatrixPart, Maxout, gru_nodes, lstm_nodes
from orrery.inspection.explain.slots import Nodes, Pointwise
from orrery.inspection.explain.sums import Linear
from orrery.nn.attention.alignment_score import Additive, AlignmentScore, General
from orrery.nn.recurrent.bahdanau import BahdanauDecoder
from orrery.nn.recurrent.luong import InputFeedingLSTM, LSTMDecoder


@dataclass(frozen=True)
class OneHead(TensorNode):
    """``[B, S, M]`` as one head, ``[B, 1, S, M]``; or one head as ``[B, L, M]`` again."""

    source: str

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the tensor with the axis of heads, or without."""
        value = numbers[self.source]
        return value[:, None] if value.dim() == 3 else value[:, 0]

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the formula of the same number: one step is enough."""
        own = index[1:] if len(index) == 3 else (0, *index)
        return numbers.nodes[self.source].explain(numbers, own, most)


@dataclass(frozen=True)
class Matches(TensorNode):
    """``e_j = v . tanh(W q + k_j)`` or ``q . k_j``, ``[B, 1, L, S]``; minus infinity where nothing may be looked at.

    Attributes:
        module: how places are scored.
        query: the key of q, or of ``W q``, ``[B, L, E]``.
        keys: the key of k, ``[B, S, E]``.
        hidden: how many places at the beginning are not looked at.
    """

    module: AlignmentScore
    query: str
    keys: str
    hidden: int

    def compute(self, numbers: Numbers) -> Tensor:
        """Return all scores."""
        q_BLE, k_BSE = numbers[self.query], numbers[self.keys]
        if isinstance(self.module, Additive):
            score_BLS = self.module.v(torch.tanh(q_BLE[:, :, None] + k_BSE[:, None]))[..., 0]
        else:
            score_BLS = q_BLE @ k_BSE.mT
        score_BLS[..., : self.hidden] = float("-inf")
        return score_BLS[:, None]

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the sum over the channels of the score."""
        _, query, key = index
        if key < self.hidden:
            return given("this place holds a state of the reader, at which nothing looks", float("-inf"))
        q_E, k_E = numbers[self.query][0][query], numbers[self.keys][0][key]
        factors = [
            numbers.vector(self.query, lambda e: (query, e), q_E),
            numbers.vector(self.keys, lambda e: (key, e), k_E),
        ]
        if not isinstance(self.module, Additive):
            return sum_of("Σ_e q[e] · k[e]", most, factors)
        return _additive(numbers, self.module, factors, q_E.double() + k_E.double(), most)


def _additive(numbers: Numbers, module: Additive, factors: Sequence[Any], inner_E: Tensor, most: int) -> Formula:
    """Return ``v . tanh(q + k)`` with the largest terms, each with what stands inside its tanh."""
    v_E = module.v.weight.detach()[0].double()
    share_E = v_E * inner_E.tanh()
    order = share_E.abs().argsort(descending=True).tolist()[:most]
    operands = [
        one
        for e in order
        for one in (numbers.one_weight(module.v, "weight", (0, e), float(v_E[e])), *(part.at(e) for part in factors))
    ]
    first = order[0]
    filled = f"{written(float(v_E[first]))} · tanh({written(float(inner_E[first]))}) + ..."
    return function_of(
        "Σ_e v[e] · tanh(q[e] + k[e])", filled, float(share_E.sum()), operands, float(share_E.abs().sum())
    )


def scoring(nodes: Nodes, path: str, encoder_states: str, module: AlignmentScore, query: str, hidden: int) -> None:
    """Add scores, pattern, and what is found of the encoder states (``context``), for a query of each step."""
    nodes[f"{path}.v"] = OneHead(encoder_states)
    keys = encoder_states
    if isinstance(module, Additive | General):
        keys = f"{path}.keys"
        nodes[keys] = Linear(encoder_states, module.k)
    if isinstance(module, Additive):
        nodes[f"{path}.query"] = Linear(query, module.q)
        query = f"{path}.query"
    scores = f"{path}.scores"
    nodes[scores] = Matches(module, query, keys, hidden)
    nodes[f"{path}.pattern"] = Pattern(scores, None, f"{path}.pattern")
    nodes[f"{path}.mixed"] = Mixed(f"{path}.pattern", f"{path}.v")
    nodes[f"{path}.context"] = OneHead(f"{path}.mixed")


def bahdanau(nodes: Nodes, path: str, source: str, encoder_states: str, module: BahdanauDecoder) -> str:
    """Add the nodes of RNNsearch's decoder: look with the old state, step, and the maxout of what that leads to."""
    before, h = f"{path}.before", f"{path}.h"
    nodes[f"{path}.first_in"] = Linear(encoder_states, module.first)
    nodes[f"{path}.first"] = Pointwise(f"{path}.first_in", torch.tanh, "tanh(x)")
    scoring(nodes, path, encoder_states, module.scoring, before, 0)
    new = (MatrixPart(source, module.word), MatrixPart(f"{path}.context", module.context, bias=None))
    gru_nodes(nodes, path, new, (MatrixPart(before, module.state),), before, Before(h, f"{path}.first"), h)
    width, context_width = module.first.out_features, module.context.in_features
    parts = (
        MatrixPart(before, module.readout),
        MatrixPart(f"{path}.context", module.readout, bias=None, column=width),
        MatrixPart(source, module.readout, bias=None, column=width + context_width),
    )
    nodes[f"{path}.readout"] = Affine(parts, 2 * width)
    nodes[f"{path}.state"] = Maxout(f"{path}.readout")
    return f"{path}.state"


def _layers(nodes: Nodes, path: str, encoder_states: str, module: Any, read: Sequence[MatrixPart]) -> str:
    """Add LSTM layers that begin with the reader's last states, and return the key of the top h."""
    h = ""
    for depth, own in enumerate(module.layers.states):
        if depth:
            read = (MatrixPart(h, module.layers.inputs[depth - 1]),)
        layer = f".{depth}"
        old, cells = f"{path}.before{layer}", f"{path}.cell_before{layer}"
        cell = (cells, Before(f"{path}.cell{layer}", encoder_states, 2 * depth + 1))
        h = lstm_nodes(nodes, path, (*read, MatrixPart(old, own)), cell, layer)
        nodes[old] = Before(h, encoder_states, 2 * depth)
    return h


def lstm_decoder(nodes: Nodes, path: str, source: str, encoder_states: str, module: LSTMDecoder) -> str:
    """Add the nodes of Sutskever's decoder."""
    nodes[f"{path}.state"] = Same(
        f"{path}.state", _layers(nodes, path, encoder_states, module, (MatrixPart(source, module.word),))
    )
    return f"{path}.state"


def input_feeding(nodes: Nodes, path: str, source: str, encoder_states: str, module: InputFeedingLSTM) -> str:
    """Add the nodes of Luong's decoder: step, look with the new state, and feed what was found into the next step."""
    fed = f"{path}.fed"
    nodes[fed] = Before(f"{path}.state")
    read = (MatrixPart(source, module.word), MatrixPart(fed, module.fed, bias=None))
    h = _layers(nodes, path, encoder_states, module, read)
    scoring(nodes, path, encoder_states, module.scoring, h, module.places)
    width = module.combine.out_features
    parts = (
        MatrixPart(f"{path}.context", module.combine, bias=None),
        MatrixPart(h, module.combine, bias=None, column=width),
    )
    nodes[f"{path}.state_in"] = Affine(parts, width)
    nodes[f"{path}.state"] = Pointwise(f"{path}.state_in", torch.tanh, "tanh(x)")
    return f"{path}.state"
