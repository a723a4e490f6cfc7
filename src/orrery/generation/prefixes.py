"""Prompts that were read before: a new one that begins alike goes on from there."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, final

from orrery.errors import UsageError
from orrery.generation.reading import common_start


@final
class Prefixes:
    """The sessions of the prompts that were used last, up to so many tokens of them together.

    Args:
        most_tokens: of all prompts together; 0 keeps none.
        least: the fewest tokens that are worth a copy of their session.
        page: tokens are counted in whole pages of so many.
    """

    def __init__(self, most_tokens: int, least: int = 32, page: int = 1) -> None:
        self.most_tokens, self.least, self._page = most_tokens, least, page
        self._kept: OrderedDict[tuple[str | None, tuple[int, ...]], Any] = OrderedDict()

    @property
    def tokens(self) -> int:
        """How many tokens are kept."""
        return sum(in_pages(len(ids), self._page) for _, ids in self._kept)

    def serves(self, tokens: int) -> bool:
        """Return whether a prompt that begins with so many tokens of another may go on from them."""
        return self.least <= tokens and in_pages(tokens, self._page) <= self.most_tokens

    def keep(self, prompt: Sequence[int], adapter: str | None, session: Any, row: int) -> None:
        """Keep a copy of the row of a session that has read this prompt, with this adapter, and nothing more."""
        key = (adapter, tuple(prompt))
        if not self.serves(len(prompt)):
            return
        if key in self._kept:
            self._kept.move_to_end(key)
            return
        self._kept[key] = session.fork([row])
        while self.tokens > self.most_tokens:
            self._kept.popitem(last=False)

    def find(self, prompt: Sequence[int], adapter: str | None = None, grid: int = 1) -> tuple[int, Any] | None:
        """Return how many of the prompt's first tokens were read before, and a session that has read them alone.

        At least one token stays to be read, behind which the answer begins. A session that cannot go back (a
        recurrence, a window that has slid) serves only where all that it has read begins the prompt. What was read with
        another adapter does not serve. The number is a multiple of ``grid``.
        """
        alike = [key for key in self._kept if key[0] == adapter]
        lengths = {key: min(common_start(key[1], prompt), len(prompt) - 1) // grid * grid for key in alike}
        for key in sorted(lengths, key=lambda own: -lengths[own]):
            if lengths[key] < self.least:
                return None
            copy = self._kept[key].fork()
            try:
                session = copy if lengths[key] == len(key[1]) else copy.truncate([lengths[key]])
            except UsageError:
                continue
            self._kept.move_to_end(key)
            return lengths[key], session
        return None


def in_pages(tokens: int, page: int) -> int:
    """Return the tokens that the fewest pages hold which hold so many."""
    return -(-tokens // page) * page
