"""Measures of an answer: what patching, tracing and knock-out ask of the next token."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor

from orrery.errors import UsageError

Measure: TypeAlias = Callable[[Float[Tensor, "*N B V"]], Float[Tensor, "*N B"]]
"""From the logits of one position of B texts, in any number of runs, to a number for each."""


def logit_difference(answer: int | Sequence[int], against: int | Sequence[int]) -> Measure:
    """Return the measure ``logit(answer) - logit(against)``; one token for all texts, or one for each."""

    def measure(logits_NBV: Tensor) -> Tensor:
        return _of(logits_NBV, answer) - _of(logits_NBV, against)

    return measure


def log_probability(answer: int | Sequence[int]) -> Measure:
    """Return the measure ``log p(answer)``, in nats."""

    def measure(logits_NBV: Tensor) -> Tensor:
        return _of(logits_NBV.log_softmax(-1), answer)

    return measure


def probability(answer: int | Sequence[int]) -> Measure:
    """Return the measure ``p(answer)``."""

    def measure(logits_NBV: Tensor) -> Tensor:
        return _of(logits_NBV.softmax(-1), answer)

    return measure


def measure_of(answer: int | Sequence[int], against: int | Sequence[int] | None) -> Measure:
    """Return the difference of two logits, or the log probability where there is no other token."""
    return log_probability(answer) if against is None else logit_difference(answer, against)


def _of(values_NBV: Tensor, ids: int | Sequence[int]) -> Tensor:
    B, V = values_NBV.shape[-2:]
    ids_B = torch.tensor([ids] * B if isinstance(ids, int) else list(ids), device=values_NBV.device)
    if len(ids_B) != B:
        raise UsageError(f"{len(ids_B)} answers for {B} texts", "give one token for all, or one for each")
    if bool(((ids_B < 0) | (ids_B >= V)).any()):
        raise UsageError(f"an answer is no token: the model tells {V:,} apart", f"give ids from 0 to {V - 1}")
    return values_NBV.gather(-1, ids_B.view(*[1] * (values_NBV.dim() - 2), B, 1).expand(*values_NBV.shape[:-1], 1))[
        ..., 0
    ]
