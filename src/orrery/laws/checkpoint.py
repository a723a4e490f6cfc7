"""The law of the checkpoint: names, dtypes, shapes and bytes survive the way there and back."""

from collections.abc import Iterator, Mapping
from functools import partial

import torch
from safetensors.torch import load, save
from torch import Tensor

from orrery.checkpoints.rules import to_ours, to_theirs
from orrery.exchange.reading.weights import weights_of
from orrery.families import load_family, rules_of
from orrery.laws.evidence import FLOAT64, Evidence, deviation, within
from orrery.laws.models import Subject, inner, random_ids, subject, tiny
from orrery.laws.place import device
from orrery.nn.spec import from_json, to_json

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def check(family: str) -> Iterator[Evidence]:
    """Send the weights through the published layout and a file, and the spec through JSON."""
    evidence = partial(within, law="checkpoint", family=family)
    for dtype in DTYPES:
        name = f"tensors that change through their layout and back, {str(dtype).removeprefix('torch.')}"
        yield evidence(name, value=changed(family, dtype), bound=0)
    yield evidence("tensors without a rule or with two", value=uncovered(family), bound=0)
    yield evidence("spec fields that change through JSON", value=respecified(family), bound=0)
    yield evidence("logits of the model built from JSON and file", value=rebuilt(family), bound=FLOAT64)


def stored(model: Subject) -> dict[str, Tensor]:
    """Return what a file of the model holds; a writer's is that of the encoder-decoder inside."""
    named = weights_of(inner(model))
    return {name: tensor.cpu() for name, tensor in named.items()}


def changed(family: str, dtype: torch.dtype) -> int:
    """Count tensors of either layout that differ after a full circle through a safetensors file."""
    ours = {name: tensor.to(dtype) for name, tensor in stored(tiny(family)).items()}
    rules = rules_of(load_family(family), load_family(family).TINY)
    theirs = to_theirs(ours, rules)
    again = to_ours(load(save(theirs)), rules, {name: tensor.shape for name, tensor in ours.items()})
    return differences(ours, again) + differences(theirs, to_theirs(again, rules))


def differences(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> int:
    """Count names on one side only, and tensors that differ in dtype, shape or any byte."""
    both = a.keys() & b.keys()
    return len(a.keys() ^ b.keys()) + sum(not _same_bytes(a[name], b[name]) for name in both)


def _same_bytes(a: Tensor, b: Tensor) -> bool:
    raw = [x.contiguous().flatten().view(torch.uint8) for x in (a, b)]
    return (a.dtype, a.shape) == (b.dtype, b.shape) and torch.equal(*raw)


def uncovered(family: str) -> int:
    """Count our tensors that not exactly one rule makes."""
    ours = stored(tiny(family))
    rules = rules_of(load_family(family), load_family(family).TINY)
    made = [name for rule in rules for _, names in rule.places(ours) for name in names]
    return sum(made.count(name) != 1 for name in ours)


def respecified(family: str) -> int:
    """Say whether the spec read back from JSON differs."""
    spec = load_family(family).spec(load_family(family).TINY)
    return int(from_json(to_json(spec)) != spec)


@torch.no_grad()
def rebuilt(family: str) -> float:
    """Compare the logits of a model built again from JSON and from bytes."""
    model, ids = tiny(family), random_ids(2, 9)
    copy = from_json(to_json(model.spec)).build(0).to(device(), torch.float64).eval()
    read = load(save(stored(model)))
    for name, parameter in copy.named_parameters():
        parameter.copy_(read[name])
    copy = subject(copy)
    return deviation(copy.logits(ids), model.logits(ids))
