"""Attention through windows: which layers look at some of the keys only, and what counting all of them has too much."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from orrery.models.model import ModelSpec
from orrery.nn.spec import traverse
from orrery.nn.stack import Stack
from orrery.planning.rehearsal import RehearsedCost
from orrery.planning.step_cost import StepCost


@dataclass(frozen=True)
class Windowed:
    """An attention at some depth that looks through a window.

    Attributes:
        channels: of all its heads together.
        keys: that a query sees at most.
    """

    channels: int
    keys: int


def windowed(spec: ModelSpec) -> Iterator[Windowed]:
    """Yield every attention of every stack that looks through a window, at each depth at which its block stands."""
    for _, part in traverse(spec):
        if isinstance(part, Stack.Spec):
            for number in range(len(part.blocks)) if part.order is None else part.order:
                yield from _in_block(part, part.blocks[number])


def _in_block(stack: Stack.Spec, block: Any) -> Iterator[Windowed]:
    for _, part in traverse(block.residuals):
        channels = pair_channels(part)
        mask = stack.masks.get(getattr(part, "mask", None) or "")
        keys = None if mask is None else mask.most_keys
        own = bool(getattr(part, "cached", None))  # none of a source
        if channels is not None and own and keys is not None:
            yield Windowed(channels, keys)


def pair_channels(part: Any) -> int | None:
    """Return the channels of an attention, each of which costs four operations a pair of tokens; none of another part.

    Where queries and values have other widths, as in latent and in differential attention, it is their mean.
    """
    heads, width, widths = (getattr(part, name, None) for name in ("heads", "head_width", "widths"))
    if not isinstance(heads, int):
        return None
    if widths is not None:
        return heads * int(widths.plain + widths.rotated + widths.value) // 2
    return heads * width if isinstance(width, int) else None


def beyond(spec: ModelSpec, rows: int, length: int) -> int:
    """Return the operations of a forward pass between tokens and keys that no window shows them.

    Scores and weighted sum of a pair cost four for each channel; a query has ``min(length, window)`` keys.
    """
    hidden = sum(one.channels * max(0, length - one.keys) for one in windowed(spec))
    return 4 * rows * length * hidden


def within(cost: StepCost, spec: ModelSpec, rows: int, length: int) -> StepCost:
    """Return the cost of a step with the operations that windows leave: a kernel may compute all and hide some.

    What lies in memory is what this implementation keeps. The backward pass, and what is computed once more, costs as
    many forward passes between these tokens as between all.
    """
    left_out = beyond(spec, rows, length)
    if not left_out:
        return cost
    again = cost.training.tokens * left_out // cost.forward.tokens
    forward = cost.forward - RehearsedCost(tokens=left_out)
    return replace(cost, forward=forward, training=cost.training - RehearsedCost(tokens=again))
