"""Histories: what each user took, in the order of time, and which of it is held back."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orrery.data.readers.interactions import Interaction

BLANK = "\N{OPEN BOX}"
"""What stands for a blank in the name of an item, so that a history is a text and an item a word of it."""
LEAST = 3
"""Actions of a user of whom something is held back: one to learn from, one to choose on, one to score on."""


@dataclass(frozen=True)
class History:
    """What one user took, the oldest first.

    Attributes:
        user: the name.
        items: the names of the items.
        times: of each, rising; nothing where the file has none.
    """

    user: str
    items: tuple[str, ...]
    times: tuple[float, ...] = ()

    @property
    def is_divided(self) -> bool:
        """Whether the last two items are held back."""
        return len(self.items) >= LEAST

    @property
    def learned(self) -> tuple[str, ...]:
        """The items to learn from: all but the last two, or all of a history too short to hold something back."""
        return self.items[:-2] if self.is_divided else self.items

    @property
    def equal_times(self) -> int:
        """How many actions have the time of the one before: the order of the file decides between them."""
        return sum(one == other for one, other in zip(self.times, self.times[1:], strict=False))


def histories(interactions: Iterable[Interaction], core: int = 0) -> list[History]:
    """Return the histories, users in the order in which they first come, equal times in the order of the file.

    With ``core`` users and items of fewer actions are left out, again and again until none is left (k-core).
    """
    found = with_core(list(interactions), core)
    by_user: dict[str, list[Interaction]] = {}
    for one in found:
        by_user.setdefault(one.user, []).append(one)
    made = []
    for user, own in by_user.items():
        timed = all(one.time is not None for one in own)
        ordered = sorted(own, key=lambda one: one.time or 0.0) if timed else own
        times = tuple(one.time for one in ordered if one.time is not None) if timed else ()
        made.append(History(user, tuple(one.item for one in ordered), times))
    return made


def with_core(interactions: list[Interaction], core: int) -> list[Interaction]:
    """Return the actions of users and items that have ``core`` of them or more, all of what is left counted again."""
    while core > 1:
        users, items = Counter(one.user for one in interactions), Counter(one.item for one in interactions)
        left = [one for one in interactions if users[one.user] >= core and items[one.item] >= core]
        if len(left) == len(interactions):
            break
        interactions = left
    return interactions


def remarks_on(found: Sequence[History]) -> list[str]:
    """Say how many users, items and actions there are, how many times are equal, and what cannot be held back."""
    actions, divided = sum(len(each.items) for each in found), [each for each in found if each.is_divided]
    items = {item for each in found for item in each.items}
    said = [f"{len(found):,} users, {len(items):,} items, {actions:,} actions; the last of a user is scored on, "
            "the one before it chooses the model"]  # fmt: skip
    if short := len(found) - len(divided):
        said.append(f"{short:,} users have fewer than {LEAST} actions: they are learned from, and nothing is held back")
    if not all(each.times for each in found):
        said.append("there are no times: the order of the file is taken for that of time")
    elif equal := sum(each.equal_times for each in found):
        last = sum(each.times[-1] == each.times[-2] for each in divided)
        said.append(
            f"equal times: {equal:,} of {actions:,} actions have the time of the one before, {last:,} of "
            f"{len(divided):,} that are scored on among them; the file's order decides, so part of it is no order"
        )
    learned = {item for each in found for item in each.learned}
    if unseen := sum(each.items[-1] not in learned for each in divided):
        said.append(f"{unseen:,} of {len(divided):,} items that are scored on are in no history that is learned from")
    return said + repeated(divided)


def repeated(divided: Sequence[History]) -> list[str]:
    """Say how many items that are scored on the user had taken before, where there are any."""
    again = sum(each.items[-1] in each.items[:-1] for each in divided)
    if not again:
        return []
    return [
        f"{again:,} of {len(divided):,} items that are scored on had been taken by the user before: without the items "
        "of the history in the ranking (data.seen: false) they cannot be found"
    ]


def spelt(item: str) -> str:
    """Return an item as the tokenizer knows it: one word."""
    return item.replace(" ", BLANK)


def shown(token: str) -> str:
    """Return the item that a token of the tokenizer stands for."""
    return token.replace(BLANK, " ")
