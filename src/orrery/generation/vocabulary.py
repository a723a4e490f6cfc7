"""The tokens of a tokenizer as the library llguidance sees them, and its matcher; nothing here imports torch."""

import importlib.util
import re
from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any, final

from orrery.errors import MachineError
from orrery.settings import install

FUEL = 2_000_000
"""Steps that compiling a form may take, 40 milliseconds by the library's figures; one that needs more is refused."""
STATES = 100_000
"""States of its automaton, about 2 kB each."""


@final
class TokenVocabulary:
    """The tokens of a tokenizer as the library sees them.

    Args:
        spellings: the bytes of each token, behind other text.
        control: tokens that spell nothing.
        end: the tokens that end an answer.
        blank: whether decoding drops a blank before the first token.
    """

    def __init__(
        self, spellings: Sequence[bytes], control: Collection[int], end: Collection[int], blank: bool = False
    ) -> None:
        self.control, self.ends = sorted(control), sorted(end)
        self.tokens = [b"" if id in control else spelling for id, spelling in enumerate(spellings)]
        self.size, self.blank = len(self.tokens), blank
        # The library must know an end, and a token for each byte, to cut what a form forces. Those that a model lacks
        # stand behind its own, where they are never drawn.
        self.tokens += [bytes([byte]) for byte in {*range(256)} - {own[0] for own in self.tokens if len(own) == 1}]
        self.end = sorted(end) or [len(self.tokens)]
        self.tokens += [b""] * (not end)
        self.special_token_ids = sorted({*control, *self.end})

    eos_token_id = property(lambda self: self.end[0])
    bos_token_id = None

    def __call__(self, text: bytes) -> list[int]:
        """Cut a text into tokens, the longest that fits each time."""
        ids, place = [], 0
        while place < len(text):
            ends = range(min(len(text), place + self._longest), place, -1)
            end = next(end for end in ends if text[place:end] in self._ids)
            ids.append(self._ids[text[place:end]])
            place = end
        return ids

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        return {spelling: id for id, spelling in enumerate(self.tokens) if spelling}

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._ids))

    @staticmethod
    def require() -> None:
        """Refuse to go on without the library. Raises `MachineError`."""
        if importlib.util.find_spec("llguidance") is None:
            raise MachineError("answers of a form need the package llguidance", install("serve"))

    @cached_property
    def engine(self) -> Any:
        """The library's own table.

        Raises:
            MachineError: the library is not installed.
        """
        self.require()
        from llguidance import LLTokenizer, TokenizerWrapper

        return LLTokenizer(TokenizerWrapper(self), eos_token=self.end)


def matcher_of(lark: str, vocabulary: TokenVocabulary) -> Any:
    """Return the library's matcher of a form, which may have an error.

    No bound of the library's is one of time: ``((a{1000}){1000}){1000}`` compiles at once, and takes seconds to begin.
    """
    from llguidance import LLMatcher, LLParserLimits

    limits = LLParserLimits(initial_lexer_fuel=FUEL, max_lexer_states=STATES, verbose_errors=False)
    return LLMatcher(vocabulary.engine, lark, log_level=0, limits=limits)


def is_whole(matcher: Any) -> bool:
    """Say whether an answer is whole and nothing can be added; the library calls one stopped that has failed too."""
    return bool(matcher.is_stopped() and not matcher.is_error())


def reason_of(matcher: Any) -> str:
    """Return what the library has against a form, without the places in its own notation."""
    error = str(matcher.get_error())
    if "NoExtension" in error:
        return "nothing can follow what is written"
    first = " ".join(re.split(r"\n\s*\d+ \| |<non-verbose/>", error)[0].split())
    return re.sub(r"^(at )?\d+\(\d+\): ", "", first)[:200]
