"""The nodes before the first block: the row of the table, its position, and what enters."""

from dataclasses import dataclass

import torch
from jaxtyping import Int, Shaped
from torch import Tensor, nn

from orrery.inspection.explain.formula import Formula, Index, Operand, function_of, given, sum_of, term
from orrery.inspection.explain.node import Numbers, TensorNode
from orrery.inspection.explain.slots import Nodes, chain
from orrery.inspection.explain.sums import Added
from orrery.nn.embeddings import TokenEmbedding, TokenTypeEmbedding
from orrery.nn.positions.grid import GridPositions
from orrery.nn.positions.learned import LearnedPositions
from orrery.nn.positions.scheme import Added as AddedPosition
from orrery.nn.positions.scheme import BoundPosition, PositionScheme
from orrery.nn.positions.sinusoidal import SinusoidalPositions
from orrery.nn.positions.sinusoidal_table import SinusoidalTable
from orrery.nn.stack import Stack


@dataclass(frozen=True)
class TableRow(TensorNode):
    """``E[id]``: the row of the table of a token."""

    table: nn.Module
    ids_L: Int[Tensor, "L"]

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the rows."""
        rows_BLD: Tensor = self.table(self.ids_L)[None]
        return rows_BLD

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the one number of the table."""
        place, channel = index
        id = int(self.ids_L[place])
        value = float(self.table(self.ids_L[place])[channel])
        weight = numbers.one_weight(self.table, "weight", (id, channel), value)
        return function_of(f"row {id} of the table, channel {channel}", "", value, [weight])


@dataclass(frozen=True)
class Position(TensorNode):
    """The vector that a position adds."""

    scheme: PositionScheme
    table_BLD: Tensor

    def compute(self, numbers: Numbers) -> Tensor:
        """Return the vectors of all places."""
        return self.table_BLD

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the number of a table, or the sine or cosine."""
        place, channel = index
        value = float(self.table_BLD[0, place, channel])
        if isinstance(self.scheme, LearnedPositions):
            row = place + self.scheme.offset
            weight = numbers.one_weight(self.scheme.table, "weight", (row, channel), value)
            return function_of(f"row {row} of the table of positions, channel {channel}", "", value, [weight])
        if isinstance(self.scheme, GridPositions) and len(self.scheme.table.weight) == self.table_BLD.shape[1]:
            weight = numbers.one_weight(self.scheme.table, "weight", (place, channel), value)
            return function_of(f"row {place} of the table of positions, channel {channel}", "", value, [weight])
        if isinstance(self.scheme, SinusoidalTable):
            weight = numbers.one_weight(self.scheme, "table", (place, channel), value)
            return function_of(f"row {place} of the table of positions, channel {channel}", "", value, [weight])
        if isinstance(self.scheme, SinusoidalPositions):
            return _sine(self.scheme, place + self.scheme.offset, channel)
        return given(f"the vector of place {place} of {type(self.scheme).__name__}", value)


def _sine(scheme: SinusoidalPositions, place: int, channel: int) -> Formula:
    pairs = -(-scheme.width // 2)
    turns = torch.arange(pairs)
    number = int(scheme.arrange(turns, turns)[channel])
    cosine = bool(scheme.arrange(torch.zeros(pairs), torch.ones(pairs))[channel])
    rate = scheme.base ** (-2 * number / scheme.width)
    angle = torch.tensor(place * rate, dtype=torch.float64)
    name, value = ("cos", float(angle.cos())) if cosine else ("sin", float(angle.sin()))
    text = f"{name}(place · base^(-2i/D)) with i = {number}"
    operands = [Operand("place", place), Operand("rate", rate)]
    return function_of(text, f"{name}({place} · {rate:.4g})", value, operands)


@dataclass(frozen=True)
class Beside(TensorNode):
    """The embedding with more channels beside it, which are those of its position."""

    source: str
    position: BoundPosition

    def compute(self, numbers: Numbers) -> Tensor:
        """Return both, one after the other."""
        return self.position.embed(numbers[self.source])

    def explain(self, numbers: Numbers, index: Index, most: int) -> Formula:
        """Return the channel of the embedding, or the unit of the place."""
        place, channel = index
        width = numbers[self.source].shape[-1]
        if channel < width:
            return sum_of("the channel of the embedding", most, more=[term(numbers.operand(self.source, index))])
        value = float(self.compute(numbers)[0][index])
        return function_of(f"1 where the place is {channel - width}, else 0", "", value, [Operand("place", place)])


def embedding(nodes: Nodes, prefix: str, embed: nn.Module, ids_L: Shaped[Tensor, "..."]) -> str | None:
    """Add the nodes of the rows of a table and return their key; nothing where no table is read."""
    if not isinstance(embed, TokenEmbedding | TokenTypeEmbedding):
        return None
    nodes[f"{prefix}word"] = TableRow(embed.token, ids_L)
    if isinstance(embed, TokenEmbedding):
        return f"{prefix}word"
    nodes[f"{prefix}token_type"] = TableRow(embed.segment, torch.zeros_like(ids_L))
    nodes[f"{prefix}word_and_token_type"] = Added(((f"{prefix}word", 1.0), (f"{prefix}token_type", 1.0)))
    return f"{prefix}word_and_token_type"


def entered(nodes: Nodes, prefix: str, stack: Stack, positions: dict[str, BoundPosition], source: str) -> None:
    """Add the nodes from the embedding to what enters the first block, ``embedded``."""
    source = chain(nodes, stack.enter, source, f"{prefix}entered")
    for name, scheme in stack.positions.items():
        assert isinstance(scheme, PositionScheme)
        bound = positions[name]
        key = f"{prefix}with_{name}"
        if isinstance(bound, AddedPosition):
            nodes[f"{prefix}position_{name}"] = Position(scheme, bound.table_BLD)
            nodes[key] = Added(((source, 1.0), (f"{prefix}position_{name}", 1.0)))
            source = key
        elif type(bound).embed is not BoundPosition.embed:
            nodes[key] = Beside(source, bound)
            source = key
    out = chain(nodes, stack.start, source, f"{prefix}embedded")
    if out != f"{prefix}embedded":
        nodes[f"{prefix}embedded"] = nodes[out]
