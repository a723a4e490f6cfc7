"""Placeholders for what messages say: other characters of the same kinds, which make up no control token."""

import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from orrery.text.chat.messages import ROLES

# Words of the message format itself: templates branch on them, and they are too plain to be anything else.
_TYPES = (
    "text", "image", "image_url", "audio", "video", "function",
    "string", "number", "integer", "boolean", "object", "array", "null",
)  # fmt: skip
_WORDS = frozenset([("role", role) for role in ROLES] + [("type", word) for word in _TYPES])
# Fields that templates read by name; the names of others (a tool's parameters) are whoever's who wrote the tool.
FIELDS = frozenset((
    "role", "content", "name", "type", "text", "title", "id", "index", "tool_calls", "tool_call_id", "function",
    "arguments", "description", "parameters", "properties", "required", "items", "enum", "return", "returns",
    "reasoning", "reasoning_content", "thinking", "image", "image_url", "audio", "video", "url", "tool", "tools",
))  # fmt: skip
_OPEN = ("arguments", "properties")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# A word of the template that a message says to steer it, such as "/no_think".
_COMMAND = re.compile(r"""(["'])(/[A-Za-z_]+)\1""")
_LETTERS, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"
_SIGNS = "<>[]|/"
_POOL = "".join(map(chr, range(0x2600, 0x26FF)))  # suns, stars and chess men: of no control token so far


class Placeholders:
    """One random change of characters: a letter becomes another letter, a digit a digit, a sign one of no token.

    Length, white space and alphabet stay, for templates look at them (a call's id of nine characters); words of the
    message format stay, and so do names and commands (``/no_think``) that no control token holds or begins with.
    """

    def __init__(self, spellings: Sequence[str], source: str) -> None:
        # One text, for a vocabulary has thousands of control tokens; no word holds a line break.
        self._controls = "\n" + "\n".join(spellings).casefold() + "\n"
        self._longest = max(map(len, self._controls.split("\n")))
        commands = sorted({match[2] for match in _COMMAND.finditer(source)}, key=lambda word: (-len(word), word))
        self._commands = re.compile("(" + ("|".join(filter(self._is_harmless, commands)) or r"(?!)") + ")")
        self._table = _changes({*_SIGNS, *"".join(spellings)})
        self._reserved = frozenset("".join(spellings))

    def of_messages(self, value: Any, key: str = "") -> Any:
        """Return the variables with a placeholder for every text; roles, types and plain names stay."""
        if isinstance(value, str):
            kept = (key, value) in _WORDS or (key == "name" and self._is_word(value))
            return value if kept else self._changed(value)
        if isinstance(value, Mapping):
            # The names of arguments are whoever's who made the call: "image" may complete a token as "im_end" may.
            fields = frozenset() if key in _OPEN else FIELDS
            return {
                name if name in fields or self._is_word(name) else self._changed(name):
                self.of_messages(inner, "arguments" if key == "arguments" else name)
                for name, inner in value.items()
            }  # fmt: skip
        return [self.of_messages(inner, key) for inner in value] if isinstance(value, list | tuple) else value

    def of_setting(self, value: Any) -> Any:
        """Return a variable that steers the template: single words and numbers stay, other text is stood in for."""
        if isinstance(value, str):
            return value if self._is_word(value) else self._changed(value)
        if isinstance(value, Mapping):
            names = {name: name if self._is_word(name) else self._changed(name) for name in value}
            return {names[name]: self.of_setting(inner) for name, inner in value.items()}
        return [self.of_setting(inner) for inner in value] if isinstance(value, list | tuple) else value

    def _changed(self, text: str) -> str:
        parts = self._commands.split(text)
        return "".join(part if place % 2 else "".join(map(self._other, part)) for place, part in enumerate(parts))

    def _other(self, character: str) -> str:
        if character in self._table:
            return self._table[character]
        if character.isascii() or not character.isalnum():
            return character
        near = [chr(ord(character) ^ bit) for bit in (2, 4, 8, 16)]  # nearly always of the same script and case
        return next((other for other in near if other not in self._reserved), "\u25a1")

    def _is_word(self, text: str) -> bool:
        """Say whether a text is a plain word of which no template can build a control token: not ``im_end``."""
        return bool(_PLAIN.fullmatch(text)) and self._is_harmless(text)

    def _is_harmless(self, text: str) -> bool:
        """Say whether no control token holds the text, begins with its end, or ends with its beginning."""
        word = text.casefold()
        lengths = range(1, min(len(word), self._longest + 1))  # a request may bring a word of a million letters
        ends = [f"\n{word[-end:]}" for end in lengths] + [f"{word[:end]}\n" for end in lengths]
        return not any(spelling in self._controls for spelling in [word, *ends])


def _changes(signs: Collection[str]) -> dict[str, str]:
    """Return a random change of the ASCII letters and digits, none into itself, and of all signs."""
    dice = secrets.SystemRandom()
    table: dict[str, str] = {}
    for alphabet in (_LETTERS, _DIGITS):
        cycle = dice.sample(alphabet, len(alphabet))
        table |= dict(zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    table |= {letter.upper(): table[letter].upper() for letter in _LETTERS}
    others = [sign for sign in sorted(signs) if sign not in table and not sign.isspace()]
    free = [sign for sign in _POOL if sign not in signs]
    return table | {sign: free[place % len(free)] for place, sign in enumerate(others)}
