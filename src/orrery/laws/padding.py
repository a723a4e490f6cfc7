"""The law of padding: padded on the left, on the right or not at all, a row gives the same numbers."""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor

from orrery.laws.evidence import FLOAT32, FLOAT64, Evidence, deviation, within
from orrery.laws.models import random_ids, real_of, tiny, translates, ways_of
from orrery.laws.place import placed
from orrery.laws.transcript import FullForwards
from orrery.nn.attention.kernels import eager
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.masks import BoundMask

LENGTHS = (9, 5, 1)
ROW = 9
WRITTEN = 4


def check(family: str) -> Iterator[Evidence]:
    """Compare padded rows with the same rows alone, in every way to compute them; with sources, these too."""
    evidence = partial(within, law="padding", family=family)
    double, single = (FullForwards(tiny(family, dtype)) for dtype in (torch.float64, torch.float32))
    for name, way in ways_of(family).items():
        for side in ("left", "right"):
            value = padded(double, side, way)
            yield evidence(f"{side}-padded == unpadded, {name}", value=value, bound=FLOAT64)
        value = padded(single, "left", way)
        yield evidence(f"left-padded == unpadded, {name}, float32", value=value, bound=FLOAT32)
        yield evidence(f"a fully masked row is zero, {name}", value=fully_masked(family, way), bound=0)
        for side in ("left", "right") if translates(family) else ():
            value = padded_sources(family, side, way)
            yield evidence(f"{side}-padded sources == unpadded, {name}", value=value, bound=FLOAT64)
    if translates(family):
        value = answers_to_padded_sources(family)
        yield evidence("tokens written to padded sources == unpadded, step by step", value=value, bound=FLOAT64)


@torch.no_grad()
def padded(full: FullForwards, side: str, way: Mapping[str, Any]) -> float:
    """Return the worst deviation over rows of nine, five and one token."""
    ids, real = random_ids(len(LENGTHS), ROW), real_of(LENGTHS, ROW, side)
    logits = full.model.logits(ids, real=real, **way)
    rows = zip(ids, real, logits, strict=True)
    return max(deviation(logits_BLV[keep], full.logits([row[keep].tolist()])[0]) for row, keep, logits_BLV in rows)


@torch.no_grad()
def padded_sources(family: str, side: str, way: Mapping[str, Any]) -> float:
    """Return the worst deviation over targets whose sources have nine, five and one token."""
    model, source, target = tiny(family).model, random_ids(len(LENGTHS), ROW), random_ids(len(LENGTHS), WRITTEN, seed=2)
    real = real_of(LENGTHS, ROW, side)
    logits = model.logits(source, target, source_real=real, **way)
    rows = zip(source, real, target, logits, strict=True)
    return max(
        deviation(logits_BLV, model.logits(row[keep][None], own[None])[0]) for row, keep, own, logits_BLV in rows
    )


@torch.no_grad()
def answers_to_padded_sources(family: str) -> float:
    """Return the worst deviation over steps that answer sources of nine, five and one token."""
    model, source = tiny(family).model, random_ids(len(LENGTHS), ROW)
    logits, session = model.start(source, WRITTEN, LENGTHS)
    target, answered = placed(torch.full((len(source), 1), model.first_token)), [logits]
    for _ in range(WRITTEN - 1):
        target = torch.cat([target, answered[-1].argmax(-1, keepdim=True)], 1)
        answered.append(model.step(target[:, -1:], session)[:, -1])
    rows = zip(source, LENGTHS, target, torch.stack(answered, 1), strict=True)
    return max(deviation(answers, model.logits(row[None, :length], own[None])[0]) for row, length, own, answers in rows)


@torch.no_grad()
def fully_masked(family: str, way: Mapping[str, Any]) -> float:
    """Return the largest output of queries that may see nothing, inside a model and from its kernel alone."""
    seen: dict[str, Tensor] = {}

    def record(key: str, value: Tensor) -> Tensor:
        seen[key] = value
        return value

    real = placed(torch.ones(2, ROW, dtype=torch.bool))
    real[1] = False
    logits = tiny(family).logits(random_ids(2, ROW), real=real, **way, taps=record)
    # What an encoder-decoder writes looks at the source too, and the source is not masked here.
    own = re.compile(r"blocks\.\d+\.(?!cross\.).*(mixed|state)")
    inside = max((float(value[1].abs().max()) for key, value in seen.items() if own.fullmatch(key)), default=0.0)
    x = placed(torch.ones(1, 2, 3, 4))
    nothing = BoundMask(dense=placed(torch.zeros(1, 1, 3, 3, dtype=torch.bool)), is_causal=False)
    alone = way.get("kernel", eager)(x, KeysValues(x, x), Operands(mask=nothing, scale=1.0))
    return inside + float(alone.abs().max()) + float(logits.isnan().sum())
