"""Random markers in place of what messages say, so that no message can spell a control token of the template."""

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from orrery.errors import ModelFileError
from orrery.text.tokenizer import Tokenizer


class ControlTokenMarkers:
    """The markers of one rendering: 128 random bits in digits, which no filter of a template changes.

    ``disarm`` puts a marker in place of each control token that a message spells, ``restore`` takes it out again.

    Attributes:
        spellings: of the control tokens, the longest first.
        control: the pattern of a control token.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        # As the file spells them: the engine's own list has them lowered where its normaliser lowers.
        added = tokenizer.definition.get("added_tokens") or []
        spellings = [token["content"] for token in added if token.get("special")]
        self.spellings = sorted(filter(None, spellings), key=lambda spelling: (-len(spelling), spelling))
        if any(spelling.isdigit() for spelling in self.spellings):
            raise ModelFileError("a control token of the tokenizer is a number", "chats cannot be kept safe with it")
        self._mark, self.open, self.close = (f"{secrets.randbits(128):039d}" for _ in range(3))
        self.control = _pattern(tuple(self.spellings))
        self._reply = re.compile(f"({self.open}|{self.close})")
        self._marked = re.compile(self._mark + r"(\d{5})")

    def disarm(self, value: Any) -> Any:
        """Return the variables with every control token that is spelt in them replaced by a marker."""
        if isinstance(value, str):
            return self.control.sub(lambda match: self._marker(self.spellings.index(match[0])), value)
        if isinstance(value, Mapping):
            return {self.disarm(key): self.disarm(inner) for key, inner in value.items()}
        return [self.disarm(inner) for inner in value] if isinstance(value, list | tuple) else value

    def restore(self, text: str) -> str:
        """Return the text with the spellings in place of the markers that `disarm` left."""
        return self._marked.sub(self._spelt, text)

    def controls(self, text: str) -> Sequence[str]:
        """Return the control tokens that a rendered text spells, in order."""
        return self.control.findall(text)

    def around(self, text: str, spans: Iterable[tuple[int, int]]) -> str:
        """Return a rendered text with the marks of a reply around each of these spans, which stand in order."""
        pieces, reached = [], 0
        for start, end in spans:
            pieces += [text[reached:start], self.open, text[start:end], self.close]
            reached = end
        return "".join([*pieces, text[reached:]])

    def parts(self, text: str) -> list[str]:
        """Return a rendered text cut before and after each control token and each mark of a reply."""
        return [part for piece in self.control.split(text) for part in self._reply.split(piece)]

    def _marker(self, index: int) -> str:
        return f"{self._mark}{index:05d}"

    def _spelt(self, marker: re.Match[str]) -> str:
        # A template that cuts a marker short may leave other digits in its place, which name no token.
        place = int(marker[1])
        return self.spellings[place] if place < len(self.spellings) else marker[0]


@lru_cache(maxsize=16)
def _pattern(spellings: tuple[str, ...]) -> re.Pattern[str]:
    # The longest first, as the tokenizers library matches them. No control tokens: a pattern that never matches.
    return re.compile("(" + ("|".join(map(re.escape, spellings)) or r"(?!)") + ")")
