"""How single tokens read, for clients that ask for log probabilities."""

from functools import cached_property
from typing import final

from orrery.errors import UsageError
from orrery.language_model.texts import LONGEST_TOKEN
from orrery.text.spellings import spellings
from orrery.text.tokenizer import Tokenizer


@final
class TokenTexts:
    """The text and the bytes of each token."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def text(self, id: int) -> str:
        r"""Return a token's text; ``bytes:\xe2\x96`` for one that is a part of a character."""
        if id >= self._tokenizer.size:
            return f"<{id}>"
        if id in self._tokenizer.control:
            return self._tokenizer.token(id)
        own = self.spelling(id)
        try:
            return own.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in own)

    def spelling(self, id: int) -> bytes:
        """Return the bytes that a token adds behind other text."""
        if id >= self._tokenizer.size or id in self._tokenizer.control:
            return b""
        return self._tokenizer.decode([id]).encode() if self._spellings is None else self._spellings[id]

    @cached_property
    def longest(self) -> int:
        """The most bytes that one token stands for."""
        return max(map(len, self._spellings or ()), default=0) or LONGEST_TOKEN

    @cached_property
    def _spellings(self) -> list[bytes] | None:
        try:
            return spellings(self._tokenizer)
        except UsageError:  # WordPiece: what a token adds depends on its neighbours
            return None
