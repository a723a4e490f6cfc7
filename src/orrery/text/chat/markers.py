"""Random markers in place of what messages say, so that no message can spell a control token of the template."""

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from orrery.errors import ModelFileError
from orrery.text.chat.messages import ROLES
from orrery.text.tokenizer import Tokenizer

# Words of the message format itself: templates branch on them, and they are too plain to be anything else.
_TYPES = (
    "text", "image", "image_url", "audio", "video", "function",
    "string", "number", "integer", "boolean", "object", "array", "null",
)  # fmt: skip
_WORDS = frozenset([("role", role) for role in ROLES] + [("type", word) for word in _TYPES])
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Fields that templates read by name; the names of others (a tool's parameters) are whoever's who wrote the tool.
_FIELDS = frozenset((
    "role", "content", "name", "type", "text", "title", "id", "index", "tool_calls", "tool_call_id", "function",
    "arguments", "description", "parameters", "properties", "required", "items", "enum", "return", "returns",
    "reasoning", "reasoning_content", "thinking", "image", "image_url", "audio", "video", "url", "tool", "tools",
))  # fmt: skip


class Markers:
    """The markers of one rendering: 128 random bits in digits, which no filter of a template changes.

    ``disarm`` puts a marker in place of each control token that a message spells; ``stand_in`` puts one in place of
    whatever a message says, for the count of control tokens that the template itself writes.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        # As the file spells them: the engine's own list has them lowered where its normaliser lowers.
        added = tokenizer.definition.get("added_tokens") or []
        spellings = [token["content"] for token in added if token.get("special")]
        self.spellings = sorted(filter(None, spellings), key=lambda spelling: (-len(spelling), spelling))
        if any(spelling.isdigit() for spelling in self.spellings):
            raise ModelFileError("a control token of the tokenizer is a number", "chats cannot be kept safe with it")
        self._mark, self.open, self.close = (f"{secrets.randbits(128):039d}" for _ in range(3))
        self._control = _pattern(tuple(self.spellings))
        self._reply = re.compile(f"({self.open}|{self.close})")
        self._marked = re.compile(self._mark + r"(\d{5})")

    def disarm(self, value: Any) -> Any:
        """Return the variables with every control token that is spelt in them replaced by a marker."""
        if isinstance(value, str):
            return self._control.sub(lambda found: self._marker(self.spellings.index(found[0])), value)
        if isinstance(value, Mapping):
            return {self.disarm(key): self.disarm(inner) for key, inner in value.items()}
        return [self.disarm(inner) for inner in value] if isinstance(value, list | tuple) else value

    def restore(self, text: str) -> str:
        """Return the text with the spellings in place of the markers that `disarm` left."""
        return self._marked.sub(self._spelt, text)

    def stand_in(self, value: Any, key: str = "") -> Any:
        """Return the variables with a marker for every text; roles, types and plain names of fields stay."""
        if isinstance(value, str):
            return value if (key, value) in _WORDS else self._blank(value)
        if isinstance(value, Mapping):
            return {
                name if name in _FIELDS or self._is_word(name) else self._marker(place): self.stand_in(inner, name)
                for place, (name, inner) in enumerate(value.items())
            }
        return [self.stand_in(inner, key) for inner in value] if isinstance(value, list | tuple) else value

    def stand_in_setting(self, value: Any) -> Any:
        """Return a variable that steers the template: single words and numbers stay, other text is stood in for."""
        if isinstance(value, str):
            return value if self._is_word(value) else self._blank(value)
        if isinstance(value, Mapping):
            return {name: self.stand_in_setting(inner) for name, inner in value.items()}
        return [self.stand_in_setting(inner) for inner in value] if isinstance(value, list | tuple) else value

    def controls(self, text: str) -> Sequence[str]:
        """Return the control tokens that a rendered text spells, in order."""
        return self._control.findall(text)

    def positions(self, text: str) -> Iterator[re.Match[str]]:
        """Return where the control tokens of a rendered text stand."""
        return self._control.finditer(text)

    def parts(self, text: str) -> list[str]:
        """Return a rendered text cut before and after each control token and each mark of a reply."""
        return [part for piece in self._control.split(text) for part in self._reply.split(piece)]

    def _marker(self, index: int) -> str:
        return f"{self._mark}{index:05d}"

    def _spelt(self, marker: re.Match[str]) -> str:
        # A template that cuts a marker short may leave other digits in its place, which name no token.
        place = int(marker[1])
        return self.spellings[place] if place < len(self.spellings) else marker[0]

    def _is_word(self, text: str) -> bool:
        """Say whether a text is a plain word of which no template can build a control token: not ``im_end``."""
        word = text.casefold()
        return bool(_PLAIN.fullmatch(text)) and not any(word in spelling.casefold() for spelling in self.spellings)

    def _blank(self, text: str) -> str:
        core = text.strip()
        return text.replace(core, self._marker(0), 1) if core else text


@lru_cache(maxsize=16)
def _pattern(spellings: tuple[str, ...]) -> re.Pattern[str]:
    # The longest first, as the tokenizers library matches them. No control tokens: a pattern that never matches.
    return re.compile("(" + ("|".join(map(re.escape, spellings)) or r"(?!)") + ")")
