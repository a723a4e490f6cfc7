"""Prompts that were read before: a new one that begins alike goes on from there."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, final

from orrery.errors import UsageError
from orrery.generation.reading import common_start


@final
class Prefixes:
    """The memories of the prompts that were used last, up to so many tokens of them together.

    Args:
        most_tokens: of all prompts together; 0 keeps none.
        least: the fewest tokens that are worth a copy of their memory.
    """

    def __init__(self, most_tokens: int, least: int = 32) -> None:
        self.most_tokens, self.least = most_tokens, least
        self._kept: OrderedDict[tuple[int, ...], Any] = OrderedDict()

    @property
    def tokens(self) -> int:
        """How many tokens are kept."""
        return sum(map(len, self._kept))

    def serves(self, tokens: int) -> bool:
        """Return whether a prompt that begins with so many tokens of another may go on from them."""
        return self.least <= tokens <= self.most_tokens

    def keep(self, prompt: Sequence[int], session: Any, row: int) -> None:
        """Keep a copy of the row of a session that has read this prompt and nothing more."""
        ids = tuple(prompt)
        if not self.serves(len(ids)):
            return
        if ids in self._kept:
            self._kept.move_to_end(ids)
            return
        self._kept[ids] = session.fork([row])
        while self.tokens > self.most_tokens:
            self._kept.popitem(last=False)

    def find(self, prompt: Sequence[int]) -> tuple[int, Any] | None:
        """Return how many of the prompt's first tokens were read before, and a session that has read them alone.

        At least one token stays to be read, behind which the answer begins. A memory that cannot go back (a recurrence,
        a window that has slid) serves only where all that it has read begins the prompt.
        """
        lengths = {ids: min(common_start(ids, prompt), len(prompt) - 1) for ids in self._kept}
        for ids in sorted(lengths, key=lambda own: -lengths[own]):
            if lengths[ids] < self.least:
                return None
            copy = self._kept[ids].fork()
            try:
                session = copy if lengths[ids] == len(ids) else copy.truncate([lengths[ids]])
            except UsageError:
                continue
            self._kept.move_to_end(ids)
            return lengths[ids], session
        return None
