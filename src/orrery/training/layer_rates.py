"""Learning rates that fall from the top of a stack of blocks to its bottom."""

import re
from collections.abc import Iterable, Mapping

from orrery.errors import UsageError
from orrery.training.state import OBJECTIVE

_BLOCK = re.compile(r"(?P<parent>(?:.*?\.)?)blocks\.(?P<number>\d+)\.")
_BELOW = re.compile(r"(?P<parent>(?:.*?\.)?)(?:embed|target|positions|enter|start)\.")
"""What a stack reads: embeddings, positions, and what is done to their sum."""


def layer_scales(names: Iterable[str], decay: float) -> dict[str, float]:
    """Return by which factor of the rate each parameter is learned.

    ``decay ** (n - i)`` for block ``i`` (from 0) of ``n``, ``decay ** (n + 1)`` below the blocks, and 1 above them:
    heads, final norms, what the objective owns (Howard and Ruder 2018, section 3.2; Clark et al. 2020, appendix B).
    Of an encoder-decoder each stack is counted from its own top.

    Args:
        names: of the parameters; what is tied comes once, under its first name: a tied head is an embedding.
        decay: 1 learns all alike.

    Raises:
        UsageError: there is something to count, and the model has no blocks.
    """
    names = list(names)
    heights = _heights(names)
    if decay != 1 and not heights:
        raise UsageError("training.optimizer.layer_decay counts blocks, and the model has none", "leave it out")
    return {name: decay ** _depth(name, heights) for name in names}


def inside_blocks(name: str) -> bool:
    """Say whether a parameter is one of a block's, and no embedding, head or final norm."""
    return not name.startswith(f"{OBJECTIVE}.") and _BLOCK.match(name) is not None


def _heights(names: Iterable[str]) -> dict[str, int]:
    """Return the number of blocks of each stack, by what its blocks' names begin with."""
    heights: dict[str, int] = {}
    for name in names:
        if not name.startswith(f"{OBJECTIVE}.") and (match := _BLOCK.match(name)):
            heights[match["parent"]] = max(heights.get(match["parent"], 0), int(match["number"]) + 1)
    return heights


def _depth(name: str, heights: Mapping[str, int]) -> int:
    """Return how many blocks lie between a parameter and the top of its stack."""
    if name.startswith(f"{OBJECTIVE}."):
        return 0
    if match := _BLOCK.match(name):
        return heights[match["parent"]] - int(match["number"])
    if match := _BELOW.match(name):
        near = [height for parent, height in heights.items() if parent.startswith(match["parent"])]
        return max(near or heights.values(), default=-1) + 1
    return 0
