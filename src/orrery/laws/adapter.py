"""The law of adapters: a new one changes nothing, and one applied equals one merged into plain matrices."""

from collections.abc import Iterator
from copy import deepcopy
from functools import partial

import torch
from torch import nn

from orrery import tuning
from orrery.laws.evidence import FLOAT32, FLOAT64, Evidence, deviation, within
from orrery.laws.models import Subject, inner, random_ids, require, subject, tiny
from orrery.models.model import Model
from orrery.nn.residual import Residual
from orrery.nn.spec import Value
from orrery.tuning.bottleneck import Bottleneck
from orrery.tuning.lora import LoRA
from orrery.tuning.quantise import Quantise

_LEFT = ("head.*", "heads.*", "*.router.*")
"""A head may be tied, and a router multiplies with its matrix itself."""
ADAPTERS = LoRA(rank=3, targets=("*",), leave=_LEFT)
WHOLE, HALVES = (Quantise(targets=("*",), leave=_LEFT, bits=bits) for bits in (8, 4))
CASES = {
    "low-rank adapters on every linear": (ADAPTERS,),
    "adapters over matrices in int8": (WHOLE, ADAPTERS),
    "adapters over matrices in int4": (HALVES, ADAPTERS),
}

ROUNDINGS = 16
"""How often a model's own rounding in float32 its two ways may be apart: some tiny models multiply any rounding."""


def check(family: str) -> Iterator[Evidence]:
    """Compare the logits of a transformed model with those of the same model after its merge, and of a new one before.

    A part that multiplies with a matrix without calling its linear would not see an adapter, and is found here.

    Raises:
        CannotRunError: the family has no linear but its head.
    """
    inside = [name for name, part in tiny(family).named_modules() if isinstance(part, nn.Linear)]
    require(any("head" not in name for name in inside), "it has no linear but its head")
    evidence = partial(within, law="adapter", family=family)
    for name, transforms in CASES.items():
        yield evidence(f"{name}: applied == merged", value=merged(family, transforms, torch.float64)[0], bound=FLOAT64)
        apart, rounding = merged(family, transforms, torch.float32)
        bound = max(FLOAT32, ROUNDINGS * rounding)
        yield evidence(f"{name}: applied == merged, float32", value=apart, bound=bound)
    yield evidence("new low-rank adapters change no number", value=begun(family, ADAPTERS), bound=0)
    if any(isinstance(part, Residual) for part in tiny(family).modules()):
        yield evidence("new bottleneck adapters change no number", value=begun(family, Bottleneck(size=3)), bound=0)


@torch.no_grad()
def begun(family: str, transform: tuning.Transform) -> float:
    """Compare logits of whole rows before and after an adapter is put on."""
    model, ids = copied(tiny(family, torch.float32)), random_ids(3, 11)
    before = model.logits(ids)
    transform.apply(inner(model))
    return deviation(model.logits(ids), before)


def copied(model: Subject) -> Subject:
    """Return a model with tensors of its own; specs are frozen, and a copy of them all costs more than the law."""
    specs = [value for part in model.modules() for value in vars(part).values() if isinstance(value, Value)]
    return deepcopy(model, {id(spec): spec for spec in specs})


@torch.no_grad()
def merged(family: str, transforms: tuple[tuning.Transform, ...], dtype: torch.dtype) -> tuple[float, float]:
    """Compare logits of whole rows, every adapter random; return also how far the merged model is from its float64."""
    model, ids = copied(tiny(family, dtype)), random_ids(3, 11)
    adapted: Model = inner(model)
    rng = torch.Generator().manual_seed(11)
    for transform in transforms:
        transform.apply(adapted)
    for name, parameter in adapted.named_parameters():
        if name.endswith(".lora_b"):
            parameter.copy_(0.3 * torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
    applied = model.logits(ids)
    tuning.merge(adapted)
    plain = model.logits(ids)
    return deviation(applied, plain), deviation(plain, subject(adapted.double()).logits(ids))
