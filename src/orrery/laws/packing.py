"""The law of packing: documents in one row, with restarted positions, give what they give separately."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import torch

from orrery.laws.evidence import FLOAT32, FLOAT64, Evidence, deviation, within
from orrery.laws.models import random_ids, require, spec_of, tiny, ways_of
from orrery.laws.transcript import FullForwards

LENGTHS = ((5, 3, 6), (1, 12), (14,))
ROW = 14


def check(family: str) -> Iterator[Evidence]:
    """Compare packed documents with the same documents alone, in every way to compute the family."""
    require(not spec_of(family).reads_source, why="cross-attention reads one source a row; documents are not packed")
    evidence = partial(within, law="packing", family=family)
    double, single = (FullForwards(tiny(family, dtype)) for dtype in (torch.float64, torch.float32))
    for name, way in ways_of(family).items():
        value = packed(double, way)
        yield evidence(f"packed == separate, {name}", value=value, bound=FLOAT64)
        value = packed(single, way)
        yield evidence(f"packed == separate, {name}, float32", value=value, bound=FLOAT32)


@torch.no_grad()
def packed(full: FullForwards, way: Mapping[str, Any]) -> float:
    """Return the worst deviation over three rows of three, two (and padding) and one document."""
    ids = random_ids(len(LENGTHS), ROW)
    documents = torch.full_like(ids, -1)
    positions = torch.zeros_like(ids)
    for row, lengths in enumerate(LENGTHS):
        start = 0
        for number, length in enumerate(lengths):
            documents[row, start : start + length] = number
            positions[row, start : start + length] = torch.arange(length)
            start += length
    logits = full.model.logits(ids, real=documents >= 0, positions=positions, documents=documents, **way)
    return max(
        deviation(logits_BLV[of == number], full.logits([row[of == number].tolist()])[0])
        for row, of, logits_BLV in zip(ids, documents, logits, strict=True)
        for number in range(int(of.max()) + 1)
    )
