"""The law of the compiled step: it writes what the model itself writes, in every state that a session can be in."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from orrery.generation.compiled_step import CompiledStep, why_not
from orrery.laws.evidence import FLOAT32, CannotRunError, Evidence, deviation, within
from orrery.laws.models import VOCABULARY, random_ids, spec_of, tiny

CAPACITY = 20
LENGTHS = (5, 9, 2)


def check(family: str) -> Iterator[Evidence]:
    """Compare the compiled step with the model: through everything that a session may go through, alone and batched.

    Raises:
        CannotRunError: the step of this family cannot be compiled, or not here.
    """
    if not spec_of(family).writes:
        raise CannotRunError("inapplicable", "it writes nothing")
    model = tiny(family, torch.float32)
    reason = why_not(model)
    if reason is not None:
        raise CannotRunError("inapplicable", reason)
    evidence = partial(within, law="kernel", family=family)
    writer = CompiledStep(model)
    yield evidence("compiled step == eager step, float32", value=through_a_session(model, writer), bound=FLOAT32)
    yield evidence("compiled step: alone == in a batch, numbers that differ", value=in_a_batch(writer), bound=0)


@torch.no_grad()
def through_a_session(model: Any, writer: Any) -> float:
    """Return how far two ways to write are apart, at most, in one session of each that goes through the same."""
    draws, worst = torch.Generator().manual_seed(11), 0.0
    ids = random_ids(len(LENGTHS), max(LENGTHS), seed=4)
    sessions = [way.start(ids, CAPACITY, list(LENGTHS))[1] for way in (model, writer)]

    def write(count: int, tokens: int = 1) -> None:
        nonlocal worst
        for _ in range(count):
            some = torch.randint(VOCABULARY, (len(sessions[0].lengths), tokens), generator=draws)
            a, b = (way.step(some, own) for way, own in zip((model, writer), sessions, strict=True))
            worst = max(worst, deviation(b, a))

    def change(operation: Callable[[Any], Any]) -> None:
        sessions[:] = [operation(session) for session in sessions]

    write(3)
    change(lambda session: session.select([2, 0, 0, 1]))
    write(2)
    others = [way.start(ids[:2, :3], CAPACITY)[1] for way in (model, writer)]
    sessions[:] = [own.join(other) for own, other in zip(sessions, others, strict=True)]
    write(2)
    if sessions[0].can_take_back(2):
        change(lambda session: session.truncate([length - 2 for length in session.lengths]))
        write(1)
    write(1, tokens=2)
    kept = [session.fork() for session in sessions]
    write(1)
    sessions[:] = kept
    write(1)
    return worst


@torch.no_grad()
def in_a_batch(writer: Any) -> int:
    """Return how many logits of a row change when others are written beside it."""
    rows, steps = 7, 4
    ids, tokens = random_ids(rows, 6, seed=8), random_ids(rows, steps, seed=9)
    alone = []
    for row in range(rows):
        _, session = writer.start(ids[row : row + 1], CAPACITY)
        alone.append(_steps(writer, session, tokens[row : row + 1]))
    differing = 0
    for size in (2, 3, 5, 7):
        session = writer.start(ids[:1], CAPACITY)[1]
        for row in range(1, size):
            session = session.join(writer.start(ids[row : row + 1], CAPACITY)[1])
        together = _steps(writer, session, tokens[:size])
        differing += int((together != torch.cat(alone[:size])).sum())
    return differing


def _steps(writer: Any, session: Any, written_BT: Tensor) -> Tensor:
    return torch.cat([writer.step(written_BT[:, t : t + 1], session) for t in range(written_BT.shape[1])], dim=1)
