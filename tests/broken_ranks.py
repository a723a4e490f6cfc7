"""What two processes measure whose ways of sharing are broken, a place at a time: a function that both are sent."""

from typing import Any
from unittest.mock import patch

from torch.distributed.fsdp import FSDPModule

from orrery.laws import ranks
from orrery.training.distributed import Group
from orrery.training.parallel import tensor_parallel

FAULTS: dict[str, tuple[str, str, Any, str, Any]] = {
    "gradients of copies are not summed": ("llama", "two copies", Group, "sum_gradients", lambda self, each: None),
    "rows of others": ("llama", "two copies", Group, "rows", lambda self, count: range(self.rank, self.rank + 1)),
    "a mean of gradients": ("llama", "shared weights", FSDPModule, "set_gradient_divide_factor", lambda self, by: None),
    "gradients before a brick": ("gpt2", "parted layers", tensor_parallel, "entered", lambda x, mesh: x),
    "outputs behind a brick": ("t5", "parted layers", tensor_parallel, "left", lambda x, mesh: x),
    "experts": ("mixtral", "parted layers and tokens", tensor_parallel, "by_rows", lambda compute, mesh, x, ctx: x),
}
"""By name: the family and the layout that show it, and what stands in the place of which function."""


def differences() -> ranks.Differences:
    """Return how far each broken layout is from one process, under the name of its fault."""
    found = {}
    for what, (family, layout, owner, name, wrong) in FAULTS.items():
        with patch.object(owner, name, wrong):
            found[what, layout] = ranks.difference(family, layout)
    return found


def right_and_wrong() -> ranks.Differences:
    """Return what the law measures, and what it measures of each fault."""
    return {**ranks.differences(), **differences()}


def lost() -> ranks.Differences:
    """End before anything is measured."""
    raise SystemExit(3)
