"""Conversations that are longer than the context: the oldest turns are left out, where the client lets them be."""

from collections.abc import Callable, Sequence

from orrery.serving.errors import ApiError
from orrery.serving.schema.chat import Message

_OF_SYSTEM = ("system", "developer")


def fitted(read: Callable[[Sequence[Message]], list[int]], messages: Sequence[Message], room: int) -> list[int]:
    """Return the ids of as many of the latest turns as fit, with everything that the system says.

    A turn begins with a message of the user, so no result of a tool loses its call. The last turn always stays:
    where it alone is too long, its ids are returned as they are.

    Args:
        read: the ids of some messages; it refuses what is far too long.
        messages: all of them.
        room: the most ids.

    Raises:
        ApiError: as ``read`` does, for the last turn alone.
    """
    turns = [place for place, message in enumerate(messages) if message.role == "user"]
    first = next((n for n, message in enumerate(messages) if message.role not in _OF_SYSTEM), 0)
    starts = sorted({first, *turns})

    def of(start: int) -> list[int]:
        if start == first:
            return read(messages)
        return read([*(one for one in messages[:start] if one.role in _OF_SYSTEM), *messages[start:]])

    def fits(start: int) -> list[int] | None:
        try:
            ids = of(start)
        except ApiError as error:
            if error.code != "context_length_exceeded":
                raise
            return None
        return ids if len(ids) <= room else None

    whole = fits(starts[0])
    if whole is not None:
        return whole
    low, high, best = 1, len(starts) - 1, None
    while low <= high:
        middle = (low + high) // 2
        fitting_ids = fits(starts[middle])
        if fitting_ids is None:
            low = middle + 1
        else:
            best, high = fitting_ids, middle - 1
    return of(starts[-1]) if best is None else best
