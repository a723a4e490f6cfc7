"""The law of ranks: processes that share a batch, its weights or its layers compute the gradient of one process."""

import copy
import math
import multiprocessing
import os
import random
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import torch
from torch import Tensor, nn

from orrery.errors import RunError
from orrery.families import load_family
from orrery.families import spec_of as spec_of_config
from orrery.laws.evidence import FLOAT64, CannotRunError, Evidence, deviation, within
from orrery.laws.runs import examples, objective_of

PROCESSES, PATIENCE = 2, 120.0
PORTS = range(15_000, 32_000)
FAMILIES: Mapping[str, Mapping[str, int]] = {
    "llama": {},
    "gpt2": {"n_embd": 32, "n_head": 4},
    "t5": {"num_heads": 4},
    "mixtral": {},
}
"""One of every kind that both processes can share, with an even number of heads."""
LAYOUTS: Mapping[str, Mapping[str, Any]] = {
    "two copies": {"data": 2},
    "shared weights": {"fsdp": 2},
    "parted layers": {"tensor": 2, "sequence": False},
    "parted layers and tokens": {"tensor": 2},
    "shared rows": {"context": 2},
    "shared experts": {"expert": 2},
    "stages": {"pipeline": 2},
}
LACKS = {
    ("t5", "shared rows"),
    ("t5", "stages"),
    *((family, "shared experts") for family in FAMILIES if family != "mixtral"),
}
"""Families that are refused in a layout, since they have no such part, or rows that are not shared yet."""
Differences = dict[tuple[str, str], float]
"""By family and layout."""


def check() -> Iterator[Evidence]:
    """Start two processes, and compare loss and gradients of each layout with those of one process.

    Raises:
        CannotRunError: training is not part of this installation, or torch has no way between processes.
    """
    for (family, layout), value in outcome(differences).items():
        yield within(f"two processes == one, {layout}", law="ranks", family=family, value=value, bound=FLOAT64)


def outcome(measure: Callable[[], Differences]) -> Differences:
    """Return what the first of two processes measures; both run the function, which is one of a module.

    Raises:
        CannotRunError: torch has no way between processes.
        RunError: a process ended before it was done.
    """
    if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
        raise CannotRunError("torch has no gloo here", "install a build of torch with it")
    port = free_port()
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    started = [
        context.Process(target=_begin, args=(measure, rank, port, sender), daemon=True) for rank in range(PROCESSES)
    ]
    for each in started:
        each.start()
    sender.close()
    try:
        found: Differences = receiver.recv() if receiver.poll(PATIENCE) else {}
    except EOFError:
        found = {}
    for each in started:
        each.join(PATIENCE if found else 0)
        each.kill()
    if not found:
        raise RunError("a process of the law of ranks ended before it was done", "see what it says above")
    return found


def free_port() -> int:
    """Return a port at which processes may meet, below those that the system gives to connections.

    One of those is free when it is asked for, and may be that of another program's connection a second later.
    """
    for port in random.SystemRandom().sample(PORTS, 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise CannotRunError("no port is free here", "close programs that listen")


def _begin(measure: Callable[[], Differences], rank: int, port: int, sender: Connection) -> None:
    """Be one of the processes."""
    os.environ |= {"WORLD_SIZE": str(PROCESSES), "RANK": str(rank), "LOCAL_RANK": str(rank)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    torch.set_num_threads(1)
    found = measure()
    if rank == 0:
        sender.send(found)
    sender.close()


def differences() -> Differences:
    """Return how far each layout is from one process, for each family; a process of several calls this."""
    each = ((family, layout) for family in FAMILIES for layout in LAYOUTS)
    return {(family, layout): difference(family, layout) for family, layout in each if (family, layout) not in LACKS}


def difference(family: str, layout: str) -> float:
    """Return the largest deviation of loss and gradients of a layout from those of one process."""
    from orrery.recipes.parallel import ParallelSettings
    from orrery.training.distributed import Alone
    from orrery.training.parallel.joining import find_ranks
    from orrery.training.parallel.placement import place
    from orrery.training.step import accumulate

    degrees = ParallelSettings(**LAYOUTS[layout])
    ranks, model = find_ranks("cpu", degrees), _model(family)
    one = _learned(family, copy.deepcopy(model), accumulate, Alone())
    many = _learned(family, model, place(model, ranks, degrees).accumulate, ranks)
    if one.keys() != many.keys():
        return math.inf
    return max(deviation(many[name], one[name]) for name in one)


def _model(family: str) -> nn.Module:
    """Return a small model whose parameters are all random."""
    rules = load_family(family)
    model = spec_of_config(rules, {**rules.TINY, **FAMILIES[family]}).build().double().eval()
    rng = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
    return model


def _learned(family: str, model: nn.Module, accumulate: Callable[..., Any], ranks: Any) -> dict[str, Tensor]:
    """Return the loss of a step in pieces of one row, and the whole gradients."""
    from orrery.training.parallel.shards import whole
    from orrery.training.precision import Precision

    objective, batch = objective_of(family), examples(family, 0)
    step = partial(accumulate, micro_batch=1, seed=(0, 0), precision=Precision("float32", "plain", "cpu", 1))
    loss = step(model, objective, objective.prepare(batch, torch.Generator()), ranks=ranks)
    gradients = {name: whole(each.grad) for name, each in model.named_parameters() if each.grad is not None}
    return {"loss": torch.tensor(loss.loss, dtype=torch.float64), **gradients}
