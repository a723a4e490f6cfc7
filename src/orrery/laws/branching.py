"""The law of branching: a fork leaves its session as it was, and whoever has given a cache away is refused."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from orrery.errors import UsageError
from orrery.laws.cache import CAPACITY, NO_CACHE, Kind, kinds
from orrery.laws.evidence import Evidence, within
from orrery.laws.models import Subject, random_ids, require, spec_of, tiny
from orrery.models.session import DecodingSession

LENGTHS = (6, 3)
"""The prompts of every session here; a window of the tiny models slides in the steps that follow."""
STEPS = 3


def check(family: str) -> Iterator[Evidence]:
    """Compare sessions that were forked with such that never were, bit by bit, and ask every handle that is over."""
    require(spec_of(family).writes, why=NO_CACHE)
    evidence = partial(within, law="branching", family=family, bound=0)
    model = tiny(family)
    for kind, cache in kinds(model).items():
        alone = undisturbed(model, cache)
        for name, disturb in disturbances(model, cache).items():
            value = changed(model, cache, alone, disturb)
            yield evidence(f"{kind}: numbers of a session that change when its fork {name}", value=value)
        value = followed(model, cache, alone)
        yield evidence(f"{kind}: numbers of a fork that change when its session goes on", value=value)
        yield evidence(f"{kind}: uses of a session that is over which are answered", value=answered(model, cache))


def disturbances(model: Subject, cache: Kind) -> dict[str, Callable[[DecodingSession], object]]:
    """Return what is done to a fork, by name; what has been forgotten for good cannot be cut, and stands aside."""

    def cut(fork: DecodingSession) -> None:
        shorter = fork.truncate([2, 2])
        model.step(random_ids(2, 4, seed=8), shorter)

    able = {
        "steps": lambda fork: write(model, fork, seed=3),
        "has its rows reordered": lambda fork: write(model, fork.reorder([1, 0]), seed=4),
        "is joined": lambda fork: model.step(random_ids(4, 2, seed=5), fork.join(started(model, cache))),
    }
    return able if _forgets(model, cache) else {**able, "is cut": cut}


@torch.no_grad()
def undisturbed(model: Subject, cache: Kind) -> tuple[Tensor, Tensor]:
    """Return what a session answers that was never forked."""
    session = started(model, cache)
    return write(model, session, seed=1), write(model, session, seed=2)


@torch.no_grad()
def changed(
    model: Subject, cache: Kind, alone: tuple[Tensor, Tensor], disturb: Callable[[DecodingSession], object]
) -> int:
    """Count the logits of a session that differ from one without a fork.

    The fork is disturbed between the session's steps, so that it would write where the session will read.
    """
    session = started(model, cache)
    fork = session.fork()
    before = write(model, session, seed=1)
    disturb(fork)
    return unequal(before, alone[0]) + unequal(write(model, session, seed=2), alone[1])


@torch.no_grad()
def followed(model: Subject, cache: Kind, alone: tuple[Tensor, Tensor]) -> int:
    """Count the logits of a fork that differ from those of a session to which the same was told."""
    session = started(model, cache)
    fork = session.fork()
    before = write(model, fork, seed=1)
    write(model, session, seed=6)
    return unequal(before, alone[0]) + unequal(write(model, fork, seed=2), alone[1])


@torch.no_grad()
def answered(model: Subject, cache: Kind) -> int:
    """Count the uses of a handle that are not refused by name, after each operation that takes its cache over."""
    other = started(model, cache)
    operations: tuple[Callable[[DecodingSession], object], ...] = (
        lambda session: session.select([0]),
        lambda session: session.reorder([1, 0]),
        lambda session: session.truncate([CAPACITY, CAPACITY]),
        lambda session: session.join(other.fork()),
        lambda session: other.fork().join(session),
    )
    uses: tuple[Callable[[DecodingSession], object], ...] = (
        lambda session: model.step(random_ids(2, 1), session),
        lambda session: session.select([0]),
        lambda session: session.truncate([1, 1]),
        lambda session: session.join(other.fork()),
        lambda session: other.fork().join(session),
        lambda session: session.fork(),
        lambda session: session.lengths,
    )
    count = 0
    for operation in operations:
        session = started(model, cache)
        operation(session)
        count += sum(_is_answered(partial(use, session)) for use in uses)
    return count


def started(model: Subject, cache: Kind) -> DecodingSession:
    """Return a session of two prompts."""
    rows = len(LENGTHS)
    session: DecodingSession = model.start(
        random_ids(rows, max(LENGTHS)), CAPACITY, LENGTHS, cache=cache(rows, CAPACITY)
    )[1]
    return session


def write(model: Subject, session: DecodingSession, seed: int) -> Tensor:
    """Tell each row three random tokens, the first two at once, and return the logits."""
    tokens = random_ids(len(session.lengths), STEPS, seed=seed)
    pieces = [tokens[:, :2], *tokens[:, 2:].split(1, 1)]
    return torch.cat([model.step(piece, session) for piece in pieces], 1)


def unequal(tensor: Tensor, expected: Tensor) -> int:
    """Count the numbers that are not the same bit by bit."""
    return int((tensor != expected).sum())


def _is_answered(use: Callable[[], object]) -> bool:
    """Say whether a use is anything but refused by name; an error by chance is no refusal."""
    try:
        use()
    except UsageError as refusal:
        return "session is over" not in refusal.message
    except Exception:
        return True
    return True


@torch.no_grad()
def _forgets(model: Subject, cache: Kind) -> bool:
    """Say whether this kind of cache cannot go back."""
    try:
        started(model, cache).truncate([2, 2])
    except UsageError:
        return True
    return False
