"""One of several processes that count what they send and hold: ``python traffic.py "expert=2 family=mixtral" ...``.

The first prints for each layout the bytes that it sends to others in a step, by operation, those that the fullest
process holds of the model, by kind, and what `orrery plan` says of both.
"""

import gc
import json
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import _resolve_process_group
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode

from orrery.families import load_family, spec_of
from orrery.nn.block import Block
from orrery.objectives import OBJECTIVES
from orrery.planning.layouts.communication import traffic
from orrery.planning.layouts.layout import parse_layout
from orrery.planning.layouts.memory import last_stage, memory, stage_weights
from orrery.planning.layouts.training import RUN, Bytes, TrainingStep
from orrery.planning.layouts.work import work_of
from orrery.planning.machines import load_machine
from orrery.recipes.config import AdamWSettings
from orrery.recipes.parallel import ParallelSettings
from orrery.training.optimizers import build_optimizer
from orrery.training.parallel import tensor_parallel
from orrery.training.parallel.joining import find_ranks
from orrery.training.parallel.placement import place
from orrery.training.parallel.shards import own_part, part_of, shared
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


class Held:
    """What this process holds of a model: storages, each once, so that a view keeps what it is a view of."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.gathered = model, 0
        for module in model.modules():
            if isinstance(module, Block):
                module.register_forward_hook(self._behind)

    def _behind(self, block: nn.Module, given: Any, out: Tensor) -> None:
        self._look()
        if out.requires_grad:
            out.register_hook(self._look)

    def _look(self, gradient: Tensor | None = None) -> None:
        """Note the weights that are gathered now, if they are more than before."""
        gathered = storages(each for each in self.model.parameters() if "fsdp" not in axes(each))
        self.gathered = max(self.gathered, gathered)

    def bytes(self, optimizer: torch.optim.Optimizer) -> dict[str, int]:
        """Return the bytes of weights, gradients and optimizer, of weights once gathered, and of all else."""
        parameters = [*self.model.parameters()]
        kinds: dict[str, list[Any]] = {
            "weights": parameters,
            "gradients": [each.grad for each in parameters if each.grad is not None],
            "optimizer": [value for state in optimizer.state.values() for value in state.values()],
        }
        held = {kind: storages(each) for kind, each in kinds.items()}
        gc.collect()
        everything = (each for each in gc.get_objects() if type(each) in (Tensor, nn.Parameter) or shared(each))
        other = storages(each for each in everything if each.device.type == "cpu") - sum(held.values())
        return {**held, "gathered": self.gathered, "other": other}


def axes(parameter: Any) -> tuple[str, ...]:
    """Return the names of the degrees that cut a parameter now, or copy what others cut."""
    return parameter.device_mesh.mesh_dim_names if shared(parameter) else ()


def storages(tensors: Iterable[Any]) -> int:
    """Return the bytes in which this process's parts of some tensors lie."""
    lying = (own_part(each.detach()).untyped_storage() for each in tensors)
    return sum({each.data_ptr(): each.nbytes() for each in lying}.values())


def kept(tensor: Tensor, mesh: Any, placements: Any) -> Tensor:
    """Return what `orrery.training.parallel.shards.cut` does, as a view that keeps the whole tensor."""
    own = tensor[part_of(tensor.shape, mesh, placements)]
    return DTensor.from_local(own, mesh, placements, run_check=False, shape=tensor.shape, stride=tensor.stride())


def counted(words: dict[str, str]) -> dict[str, Any]:
    """Return what this process sends and holds in a step of a small model, and what the plan says of the layout."""
    whole = bool(words.pop("whole", ""))
    family, vocabulary = words.pop("family", "llama"), int(words.pop("vocabulary", SIZES["vocab_size"]))
    settings: dict[str, Any] = {name: int(value) for name, value in words.items()}
    degrees = ParallelSettings(**settings)
    ranks, rules = find_ranks("cpu", degrees), load_family(family)
    spec = spec_of(rules, {**rules.TINY, **SIZES, "vocab_size": vocabulary})
    torch.manual_seed(0)
    model = spec.build()
    with patch.object(tensor_parallel, "cut", kept if whole else tensor_parallel.cut):
        accumulate = place(model, ranks, degrees).accumulate
    batch = {name: torch.randint(1, 20, (ROWS, LENGTH)) for name in ("ids", "targets")}
    how = {"micro_batch": degrees.micro or 1, "seed": (0, 0), "precision": Precision("float32", "plain", "cpu", 1)}
    held = Held(model)
    with Counting() as counting:
        accumulate(model, OBJECTIVES.find("causal")(), batch, ranks=ranks, **how)
    del batch, how
    optimizer = build_optimizer(model, AdamWSettings(rate=0.01))
    optimizer.step()
    text = ",".join(f"{name}={value}" for name, value in words.items()).replace("sequence=0", "sequence=no")
    # All of a run's numbers are twice as long here.
    sizes = Bytes(*(2 * size for size in vars(replace(RUN, activation=4)).values()))
    training = TrainingStep(ROWS, LENGTH, bytes=sizes)
    work, layout = work_of(spec, family), parse_layout(text)
    planned = traffic(work, training, layout, load_machine("h100"))
    everyone: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, held.bytes(optimizer))
    return {
        "sent": counting.sent,
        "plan": {one.kind: one.bytes for one in planned},
        "held": max(everyone, key=lambda one: one["weights"]),
        "memory": vars(memory(work, training, layout)),
        "layer": sizes.weight * stage_weights(work, layout, last_stage(work, layout)).layer,
    }


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
