"""How a layer may be parted across processes (tensor parallelism): each brick says it in one line beside itself."""

from dataclasses import dataclass
from enum import IntEnum


class Grain(IntEnum):
    """The least that a layer, which every process has whole, has to see at once to compute what it always does."""

    NUMBER = 0
    """A number of a token: activations, scales, dropout."""
    HEAD = 1
    """The channels of a head of a token."""
    TOKEN = 2
    """All channels of a token: norms."""
    ROWS = 3
    """All tokens of the rows."""


@dataclass(frozen=True)
class Parted:
    """A brick of which each process computes some channels, from all of its input to a part of a sum.

    Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053, section 3.

    Attributes:
        columns: names of linear layers of whose outputs each process computes some, its rows of weight and bias.
        rows: names of the last linear layers, of whose inputs each process has some; their outputs are summed.
        first: names of parameters that are cut along their first axis.
        together: the attribute with the number of channels that stay together, such as those of a head; else one.
        grain: the coarsest of what else the brick contains.
    """

    columns: tuple[str, ...]
    rows: tuple[str, ...]
    first: tuple[str, ...] = ()
    together: str | None = None
    grain: Grain = Grain.NUMBER
