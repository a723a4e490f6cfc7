"""The law of sight: looking never changes a number, and what is shown accounts for what comes out."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from orrery.inspection.checks import Mixing, StreamCheck, sums_up
from orrery.inspection.definition import DefinitionBeside
from orrery.inspection.recorder import Recorder
from orrery.laws.evidence import FLOAT32, FLOAT64, Evidence, deviation, within
from orrery.laws.models import Subject, kernels_of, random_ids, tiny, ways_of
from orrery.nn.attention.kernels import Kernel, eager

COMPONENTS = 1e-4
PRECISIONS = {"float64": (torch.float64, FLOAT64), "float32": (torch.float32, FLOAT32)}


def check(family: str) -> Iterator[Evidence]:
    """Run with and without a recorder, and rebuild patterns and the stream from what it saw."""
    evidence = partial(within, law="sight", family=family)
    fused = next(reversed(kernels_of(family).values()), eager)
    for name, way in ways_of(family).items():
        changed = changed_by_looking(tiny(family, torch.float32), way)
        yield evidence(f"numbers that a recorder changes, {name}", value=changed, bound=0)
    for precision, (dtype, bound) in PRECISIONS.items():
        value = derived(tiny(family, dtype), fused)
        yield evidence(f"softmax(q k) v == what the kernel gave, {precision}", value=value, bound=bound)
    if not sums_up(tiny(family).stack):  # a norm or a factor acts on the stream itself, as in every post-norm model
        return
    yield evidence("embedded + all that was added == stream", value=streams(tiny(family)), bound=FLOAT64)
    value = components(tiny(family, torch.float32))
    yield evidence("head(final(embedded + added)) == logits, float32", value=value, bound=COMPONENTS)


@torch.no_grad()
def changed_by_looking(model: Subject, way: Mapping[str, Any]) -> int:
    """Count the logits that differ in any bit."""
    seen = model.logits(random_ids(2, 13), **way, taps=Recorder())
    return int((seen != model.logits(random_ids(2, 13), **way)).sum())


@torch.no_grad()
def derived(model: Subject, kernel: Kernel) -> float:
    """Compare the definition's pattern times values with the output of the kernel beside it, in every attention."""
    mixing = Mixing()
    recorder = Recorder(keep=(), watchers=[mixing])
    model.logits(random_ids(2, 13), kernel=DefinitionBeside(kernel, recorder, mixing), taps=recorder)
    return mixing.worst


def streams(model: Subject) -> float:
    """Compare the rebuilt stream with the last block's."""
    return added_up(model)[1].error


@torch.no_grad()
def components(model: Subject) -> float:
    """Compare the logits of the rebuilt stream with the model's."""
    logits, stream = added_up(model)
    return deviation(model.head(model.stack.final(stream.total.to(logits.dtype))), logits)


@torch.no_grad()
def added_up(model: Subject) -> tuple[Tensor, StreamCheck]:
    """Return the logits, and the sum of the embeddings and all that was added."""
    stream = StreamCheck(model.stack)
    return model.logits(random_ids(2, 13), kernel=eager, taps=Recorder(keep=(), watchers=[stream])), stream
