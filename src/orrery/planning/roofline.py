"""An operation as a machine sees it: what it multiplies, and what it reads and writes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_leaves

from orrery.planning.rehearsal import MAPPED

ACROSS = "clone across"
"""The name of a clone that reads a matrix across its rows, as transposing does."""


@dataclass(frozen=True)
class RooflineOperation:
    """An operation.

    Attributes:
        name: torch's.
        operations: in products, a multiplication and an addition counted as two.
        bytes: that it reads and writes, each tensor once.
        shapes: of its tensors, for those that multiply; else left out, so that equal ones are found together.
        fresh: whether what it writes is new memory.
        mapped: bytes of what it makes that is so large that its pages are new each time.
    """

    name: str
    operations: int
    bytes: int
    shapes: tuple[tuple[int, ...], ...]
    fresh: bool
    mapped: int = 0


def call_of(func: Any, args: Sequence[Any], out: Any, operations: int) -> RooflineOperation:
    """Return an operation as a machine sees it; a view of what is there reads and writes nothing."""
    read = [one for one in tree_leaves(args) if isinstance(one, Tensor)]
    made = [one for one in tree_leaves(out) if isinstance(one, Tensor)]
    theirs = {one.untyped_storage()._cdata for one in read}
    fresh = [one for one in made if one.untyped_storage()._cdata not in theirs]
    name = func._overloadpacket.__name__
    if name == "clone" and read[0].dim() > 1 and read[0].stride(-1) != 1 and made[0].is_contiguous():
        name = ACROSS
    if not fresh and not func._schema.is_mutable:
        return RooflineOperation("view", 0, 0, (), False)
    moved = sum(one.numel() * one.element_size() for one in (*read, *fresh))
    shapes = tuple(tuple(one.shape) for one in read) if operations else ()
    mapped = sum(one.nbytes for one in fresh if one.nbytes >= MAPPED)
    return RooflineOperation(name, operations, moved, shapes, bool(fresh), mapped)
