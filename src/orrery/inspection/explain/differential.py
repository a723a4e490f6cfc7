"""Nodes of differential attention: values that two heads share, and one head less another."""

from dataclasses import dataclass

from torch import Tensor

from orrery.inspection.explain.formula import Formula, Index, Operand, sum_of, term
from orrery.inspection.explain.node import Numbers, TensorNode
from orrery.nn.attention.differential import DifferentialAttention, shared_values


@dataclass(frozen=True)
class SharedValues(TensorNode):
    """For every key-value head the values of its pair, ``[B, K, S, 2 C]``, from ``[B, S, K C]``.

    Attributes:
        source: the key of the values of all heads in a row.
        width: channels of a head.
    """

    source: str
    width: int

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the values, two heads side by side."""
        return shared_values(numbers[self.source].unflatten(-1, (-1, self.width)).transpose(1, 2))

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the formula of the number itself in the head that it comes from."""
        head, place, channel = index
        pairs = numbers[self.source].shape[-1] // self.width // 2
        second, own = divmod(channel, self.width)
        channel = (head % pairs + second * pairs) * self.width + own
        return numbers.nodes[self.source].explain(numbers, (place, channel), most)


@dataclass(frozen=True)
class HeadDifference(TensorNode):
    """``mixed_h - l mixed_{h + H/2}`` for each pair, ``[B, L, H C]`` from ``[B, H, L, 2 C]``.

    Attributes:
        mixed: the key of what the heads mix.
        module: the attention, which knows how much is taken away.
    """

    mixed: str
    module: DifferentialAttention

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the differences of all pairs in a row."""
        return self.module.difference(numbers[self.mixed])

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the two terms."""
        place, channel = index
        _, heads, _, width = numbers[self.mixed].shape
        pair, own = divmod(channel, width)
        first, second = (numbers.operand(self.mixed, (head, place, own)) for head in (pair, pair + heads // 2))
        taken = Operand("what is taken away", -float(self.module.taken()))
        return sum_of("mixed[h] - l · mixed[h + H/2]", most, more=[term(first), term(taken, second)])
