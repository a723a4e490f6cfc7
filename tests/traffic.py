"""One of several processes that count what they send in a step: ``python traffic.py "expert=2 family=mixtral" ...``.

The first prints for each layout the bytes that it sends to others, by operation, and what `orrery plan` says of it.
"""

import json
import sys
from collections import Counter
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import _resolve_process_group
from torch.utils._python_dispatch import TorchDispatchMode

from orrery.families import load_family, spec_of
from orrery.objectives import OBJECTIVES
from orrery.planning.layouts.communication import traffic
from orrery.planning.layouts.layout import parse_layout
from orrery.planning.layouts.training import Bytes, TrainingStep
from orrery.planning.layouts.work import work_of
from orrery.planning.machines import load_machine
from orrery.recipes.parallel import ParallelSettings
from orrery.training.parallel.joining import find_ranks
from orrery.training.parallel.placement import place
from orrery.training.precision import Precision

ROWS, LENGTH = 8, 8
SIZES = {"num_hidden_layers": 4, "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2}
SIZES |= {"intermediate_size": 64, "vocab_size": 64}
SHARES = {"all_gather": 1.0, "allgather": 1.0, "reduce_scatter": 1.0, "all_reduce": 2.0, "allreduce": 2.0}
"""By operation, how often a ring of processes sends what each does not have."""


def size_of(values: Any) -> int:
    """Return the bytes of tensors, however they are nested."""
    if isinstance(values, Tensor):
        return values.numel() * values.element_size()
    return sum(map(size_of, values)) if isinstance(values, list | tuple) else 0


class Counting(TorchDispatchMode):
    """Counts what is sent by each operation that torch dispatches; of numbers, and not of counts and flags."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        done = func(*args, **(kwargs or {}))
        kind, name = func._schema.name.split("::")
        given = [each for each in args if size_of(each)]
        if kind in {"c10d", "_c10d_functional"} and given and "wait" not in name and "wrap" not in name:
            self._count(name, args, given)
        return done

    def _count(self, name: str, args: Any, given: list[Any]) -> None:
        boxed = (each for each in args if isinstance(each, torch.ScriptObject) and "ProcessGroup" in str(each._type()))
        group = next((dist.ProcessGroup.unbox(each) for each in boxed), None)
        group = _resolve_process_group(args[-1]) if isinstance(args[-1], str) else group
        count = dist.get_world_size() if group is None else group.size()
        own = given[-1] if "gather" in name or "reduce_scatter" in name else given[0]
        first = own[0] if isinstance(own, list) else own
        if not first.is_floating_point() or first.dtype != torch.float64 or first.numel() <= 8:
            return
        size = size_of(own) * (count if "gather" in name else 1)
        often = next((share for part, share in SHARES.items() if part in name), 0.0)
        kind = f"{name.strip('_')}{' of vectors' if first.dim() == 1 and first.numel() <= 32 else ''}"
        self.sent[kind] += often * size * (count - 1) / count if often else size


def counted(words: dict[str, str]) -> dict[str, Any]:
    """Return what this process sends and holds in a step of a small model, and what the plan says of the layout."""
    family = words.pop("family", "llama")
    settings: dict[str, Any] = {name: int(value) for name, value in words.items()}
    degrees = ParallelSettings(**settings)
    ranks, rules = find_ranks("cpu", degrees), load_family(family)
    spec = spec_of(rules, {**rules.TINY, **SIZES})
    torch.manual_seed(0)
    model = spec.build()
    accumulate = place(model, ranks, degrees).accumulate
    batch = {name: torch.randint(1, 20, (ROWS, LENGTH)) for name in ("ids", "targets")}
    how = {"micro_batch": degrees.micro or 1, "seed": (0, 0), "precision": Precision("float32", "plain", "cpu", 1)}
    with Counting() as counting:
        accumulate(model, OBJECTIVES.find("causal")(), batch, ranks=ranks, **how)
    text = ",".join(f"{name}={value}" for name, value in words.items()).replace("sequence=0", "sequence=no")
    training = TrainingStep(ROWS, LENGTH, bytes=Bytes(8, 8, 24, 8))
    planned = traffic(work_of(spec, family), training, parse_layout(text), load_machine("h100"))
    return {"sent": counting.sent, "plan": {one.kind: one.bytes for one in planned}}


def main() -> int:
    """Count a step in float64 of each layout that is named."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    found = [counted(dict(word.split("=", 1) for word in layout.split())) for layout in sys.argv[1:]]
    if dist.get_rank() == 0:
        print(json.dumps(found))
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main())
