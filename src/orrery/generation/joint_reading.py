"""Short prompts that are read in one call, where little of it is padding."""

from collections import deque
from collections.abc import Sequence
from functools import reduce
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from orrery.generation.generate import padded
from orrery.generation.prompt_reading import PromptReading
from orrery.models.calls import on_device
from orrery.models.protocols import ChunkedModel

LEAST_REAL = 0.75
"""The share of a call that must be tokens; the rest is padding."""
LOOK_AHEAD = 64
"""How many of those that wait are looked at."""


def take_together(waiting: deque[PromptReading], most: int) -> list[PromptReading]:
    """Take the first reading off the queue, and with it those that can be finished with it in one call.

    They take at most ``most`` places, padding among them; where the first needs more, or tells the scores of its
    prompt, it is alone. One that begins as another of the call does waits, and goes on from what that one has read.
    """
    first = waiting.popleft()
    first.begin()
    taken = [first]
    if not first.joins or first.remaining > most:
        return taken
    longest = total = first.remaining
    for reading in list(islice(waiting, LOOK_AHEAD)):
        reading.begin()
        wide = max(longest, reading.remaining)
        places, real = wide * (len(taken) + 1), total + reading.remaining
        if places > most or real < LEAST_REAL * places or not _fits(reading, taken):
            continue
        waiting.remove(reading)
        taken.append(reading)
        longest, total = wide, real
    return taken


def _fits(reading: PromptReading, taken: Sequence[PromptReading]) -> bool:
    """Say whether a reading is of the same kind as those of a call, and none of them begins alike."""
    same = reading.joins and (reading.session is None) == (taken[0].session is None)
    return same and not any(reading.could_reuse(other) for other in taken)


def read_together(
    model: ChunkedModel, readings: Sequence[PromptReading], capacity: int, device: torch.device | None
) -> tuple[Tensor, Any]:
    """Read what is left of several prompts; return the logits behind each, ``[G, V]``, and their session.

    Args:
        model: what reads.
        readings: all fresh, or all begun; they are used up.
        capacity: tokens of a whole row.
        device: where the model is.
    """
    rows = [reading.left for reading in readings]
    ids_GN, lengths = padded(rows, device)
    if readings[0].session is None:
        return model.start(ids_GN, capacity, lengths)
    session = reduce(lambda one, other: one.join(other), (reading.session for reading in readings))
    logits_GNV = model.step(ids_GN, session, lengths)
    last_G = on_device([len(row) - 1 for row in rows], logits_GNV.device)
    return logits_GNV[torch.arange(len(rows), device=logits_GNV.device), last_G], session
