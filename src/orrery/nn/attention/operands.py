"""What a kernel takes beside the queries: the keys and values that it reads, and everything that shapes the scores."""

from collections.abc import Callable
from typing import NamedTuple

from jaxtyping import Float
from torch import Tensor

from orrery.nn.masks import BoundMask


def unseen(name: str, value: Tensor) -> Tensor:
    """Show a value to nobody."""
    return value


class KeysValues(NamedTuple):
    """The keys and values that a call may read, dense: one tensor each, with a place for every key.

    It is a view: a cache hands out what it holds and copies nothing. Shapes: ``[B, K, S, C]`` and ``[B, K, S, E]``.
    """

    k_BKSC: Float[Tensor, "B K S C"]
    v_BKSE: Float[Tensor, "B K S E"]


class Operands(NamedTuple):
    """What shapes the scores and what becomes of them; made once a layer and call, and never changed.

    Attributes:
        mask: which query may see which key.
        scale: what the products are multiplied by.
        bias_BHLS: what is added to the scores.
        dropout: of the pattern.
        cap: scores are bounded by ``cap * tanh(scores / cap)`` (Gemma 2).
        sinks_H: a score that every query gives to nothing (gpt-oss).
        tap: sees scores and pattern, and returns them or what stands in for them.
    """

    mask: BoundMask
    scale: float
    bias_BHLS: Float[Tensor, "#B H L S"] | None = None
    dropout: float = 0.0
    cap: float | None = None
    sinks_H: Float[Tensor, "H"] | None = None
    tap: Callable[[str, Tensor], Tensor] = unseen
