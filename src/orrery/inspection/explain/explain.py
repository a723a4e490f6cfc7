"""Explain a number: any value inside a pass as a formula with its real operands, down to weights and tokens."""

from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Shaped
from torch import Tensor

from orrery.errors import UsageError
from orrery.inspection.checks import Check
from orrery.inspection.explain.formula import Formula, Index
from orrery.inspection.explain.graph import graph_of
from orrery.inspection.explain.node import GivenTensor, Numbers
from orrery.inspection.explain.recorded_layer import RecordedLayer
from orrery.inspection.recorded import Recorded
from orrery.models.model import Model

_WITHOUT_ROWS = (".router_logits", ".load")
NAMED = 12
"""Terms of a long sum that are named; the others are counted and summed."""


@dataclass(frozen=True)
class Explanation:
    """One number and where it comes from.

    Attributes:
        key: of its tensor.
        index: its place, after the axis of rows.
        recorded: the number as the model computed it.
        formula: how it follows from others; each operand with a key can be explained in turn.
        check: the formula's value against the recorded one.
    """

    key: str
    index: Index
    recorded: float
    formula: Formula
    check: Check


@final
class Explainer:
    """Explains the numbers of one pass over one row.

    Args:
        model: in eval mode.
        recorded: the tensors of the pass by key: a trace, with everything kept.
        ids: what the answering stack read, ``[1, L]``; of a model of images the image.
        source_ids: what the reader of an encoder-decoder read, ``[1, S]`` or an image.

    Attributes:
        numbers: every tensor of the pass by key, also those that follow from recorded ones: what a layer reads after
            its norm (``...input``), queries before their rotation (``...q_in``), what an output matrix gives.
    """

    def __init__(
        self,
        model: Model,
        recorded: Recorded,
        ids: Shaped[Tensor, "1 ..."],
        source_ids: Shaped[Tensor, "1 ..."] | None = None,
    ) -> None:
        nodes = graph_of(model, ids[0], None if source_ids is None else source_ids[0])
        paths = {id(module): name for name, module in model.named_modules()}
        self.numbers = Numbers(recorded, nodes, paths)

    @torch.no_grad()
    def explain(self, key: str, index: Index, most: int = NAMED) -> Explanation:
        """Return the formula of one number.

        Args:
            key: of a tensor of the pass, recorded or derived.
            index: its place, after the axis of rows.
            most: how many terms of a sum are named.

        Raises:
            UsageError: there is no such tensor or place.
        """
        layer = self.numbers.nodes.get(key.rpartition(".")[0])
        if isinstance(layer, RecordedLayer):
            layer.record(self.numbers)
        index = self._checked(key, index)
        recorded = self.numbers.at(key, index)
        node = self.numbers.nodes.get(key) or GivenTensor(key, "no formula is known for this kind of number")
        formula = node.explain(self.numbers, index, most)
        return Explanation(key, index, recorded, formula, self._compare(recorded, formula, key))

    def _checked(self, key: str, index: Index) -> Index:
        """Return a place with all of its numbers counted from the beginning."""
        if key not in self.numbers.nodes and key not in self.numbers.recorded:
            raise UsageError(f"nothing is called {key!r} in this pass", "a trace lists its keys")
        if key.endswith(_WITHOUT_ROWS):
            raise UsageError(f"{key} has no formula here", "what a mixture adds to the stream can be explained: .added")
        shape = tuple(self.numbers[key].shape[1:])
        if len(index) != len(shape) or not all(-size <= n < size for n, size in zip(index, shape, strict=True)):
            raise UsageError(f"{key} has no number at {list(index)}", f"its shape after the rows is {list(shape)}")
        return tuple(n % size for n, size in zip(index, shape, strict=True))

    def _compare(self, recorded: float, formula: Formula, key: str) -> Check:
        name = "the formula gives the recorded number"
        if recorded == formula.value:  # infinities too
            return Check(name, 0.0, 0.0)
        off = abs(formula.value - recorded) / max(formula.size, abs(recorded))
        return Check(name, off, bound_of(self.numbers[key]))


def bound_of(value: Tensor) -> float:
    """Return how far a number may be from its formula, as a share of the size of its terms.

    Each is rounded once or twice in the tensor's dtype: 1e-9 in float64, 1e-5 in float32, four units of the last place
    in 16 bits.
    """
    if not value.dtype.is_floating_point:
        return 0.0
    return 1e-9 if value.dtype == torch.float64 else max(1e-5, 4 * torch.finfo(value.dtype).eps)
