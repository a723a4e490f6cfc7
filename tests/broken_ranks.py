"""What two processes measure whose ways of sharing are broken, a place at a time: a function that both are sent."""

from typing import Any
from unittest.mock import patch

from torch.distributed.fsdp import FSDPModule

from orrery.laws import ranks
from orrery.training import distributed
from orrery.training.distributed import Group
from orrery.training.parallel import columns, context_parallel, expert_parallel, pipeline, tensor_parallel

answered, columns_of = expert_parallel.answered, columns.columns_of
"""As they are."""


def by_others(experts: Any, *given: Any) -> Any:
    """Have the first of own experts answer what the last is asked."""
    return answered(experts[::-1], *given)


FAULTS: dict[str, tuple[str, str, Any, str, Any]] = {
    "gradients of copies are not summed": ("llama", "two copies", Group, "sum_gradients", lambda self, each: None),
    "rows of others": ("llama", "two copies", Group, "rows", lambda self, count: range(self.rank, self.rank + 1)),
    "a mean of gradients": ("llama", "shared weights", FSDPModule, "set_gradient_divide_factor", lambda self, by: None),
    "gradients before a brick": ("gpt2", "parted layers", tensor_parallel, "entered", lambda x, mesh: x),
    "outputs behind a brick": ("t5", "parted layers", tensor_parallel, "left", lambda x, mesh: x),
    "experts": ("mixtral", "parted layers and tokens", tensor_parallel, "by_rows", lambda compute, mesh, x, ctx: x),
    "tokens of others": ("gpt2", "shared rows", columns, "columns_of", lambda length, *more: columns_of(length, 2, 0)),
    "gradients of gathered keys": ("llama", "shared rows", context_parallel, "SUM", context_parallel.COPY),
    "answers of other experts": ("mixtral", "shared experts", expert_parallel, "answered", by_others),
    "gradients of a table at both ends": ("gpt2", "stages", distributed, "takes_part", lambda mesh: False),
    "stages in another order": ("llama", "stages", pipeline, "depths_of", lambda layers, how: [range(1, 2), range(1)]),
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
