"""Answers of a form: a regular expression, a JSON schema or a grammar, held by the library llguidance."""

import importlib.util
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from orrery.errors import MachineError, UsageError
from orrery.generation.form_limits import SCHEMA, check_schema, check_text
from orrery.generation.guides import Guide
from orrery.settings import install

FUEL = 2_000_000
"""Steps that compiling a form may take, 40 milliseconds by the library's figures; one that needs more is refused."""
STATES = 100_000
"""States of its automaton, about 2 kB each."""

SPACES = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""Where JSON may have blanks: as json.dumps writes it, since a model may go on with blanks for ever."""


@dataclass(frozen=True)
class Form:
    """What an answer must look like: exactly one of the three.

    Attributes:
        regex: a regular expression for the whole answer, without look-around and back-references.
        schema: a JSON schema; ``{}`` stands for any JSON object.
        grammar: a context-free grammar as the library Lark writes it, with ``start`` as its first rule.
    """

    regex: str | None = None
    schema: Mapping[str, Any] | None = None
    grammar: str | None = None

    def __post_init__(self) -> None:
        given = [name for name in ("regex", "schema", "grammar") if getattr(self, name) is not None]
        if len(given) != 1:
            raise UsageError(f"a form of {' and '.join(given) or 'nothing'}", "give a regex, a schema or a grammar")
        for name in ("regex", "grammar"):
            text = getattr(self, name)
            if not isinstance(text, str | None):
                raise UsageError(f"the {name} {str(text)[:40]!r} is no text", f"give the {name} as a text")
            check_text(name, text or "")
        if not isinstance(self.schema, Mapping | None):
            raise UsageError(f"{str(self.schema)[:40]!r} is no JSON schema", "a schema is an object: {...}")
        check_schema(self.schema or {})

    def lark(self, blank: bool) -> str:
        """Return the form as the library reads it; ``blank`` lets a blank that decoding drops stand before it."""
        if self.regex is not None:
            start = f"start: {'BLANK? ' if blank else ''}ANSWER\nANSWER: {_quoted(self.regex)}\n"
        elif self.schema is not None:
            schema = _as_json({"x-guidance": SPACES, **(self.schema or {"type": "object"})})
            start = f"start: {'BLANK? ' if blank else ''}answer\nanswer: %json {schema}\n"
        else:
            return str(self.grammar)
        return start + ('BLANK: " "\n' if blank else "")


@final
class Vocabulary:
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
        found, place = [], 0
        while place < len(text):
            ends = range(min(len(text), place + self._longest), place, -1)
            end = next(end for end in ends if text[place:end] in self._ids)
            found.append(self._ids[text[place:end]])
            place = end
        return found

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        return {spelling: id for id, spelling in enumerate(self.tokens) if spelling}

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._ids))

    @cached_property
    def engine(self) -> Any:
        """The library's own table.

        Raises:
            MachineError: the library is not installed.
        """
        if importlib.util.find_spec("llguidance") is None:
            raise MachineError("answers of a form need the package llguidance", install("serve"))
        from llguidance import LLTokenizer, TokenizerWrapper

        return LLTokenizer(TokenizerWrapper(self), eos_token=self.end)


@final
class Formed(Guide):
    """Only tokens by which the answer can still become one of the form; the end where it is one."""

    def __init__(self, matcher: Any, size: int) -> None:
        self._matcher, self._size = matcher, size

    @staticmethod
    def begin(form: Form, vocabulary: Vocabulary) -> "Formed":
        """Return the guide of an answer that begins.

        Raises:
            UsageError: the form cannot be read, or compiling it takes too long.
        """
        from llguidance import LLMatcher, LLParserLimits

        limits = LLParserLimits(initial_lexer_fuel=FUEL, max_lexer_states=STATES, verbose_errors=False)
        matcher = LLMatcher(vocabulary.engine, form.lark(vocabulary.blank), log_level=0, limits=limits)
        if matcher.is_error():
            raise UsageError(f"this form cannot be used: {_reason(matcher)}", "correct the regex, schema or grammar")
        return Formed(matcher, vocabulary.size)

    def copy(self) -> "Formed":
        """Return a guide in the same state."""
        return Formed(self._matcher.deep_copy(), self._size)

    def allowed(self) -> Bool[Tensor, "V"]:
        """Return which tokens lead on.

        Raises:
            UsageError: the form became too hard to follow.
        """
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        if self._matcher.is_error():
            raise UsageError(f"this form cannot be followed: {_reason(self._matcher)}", "simplify it")
        return torch.from_numpy(np.unpackbits(bits, bitorder="little")[: self._size].astype(bool))

    def push(self, token: int) -> None:
        """Take a token; the end token too."""
        self._matcher.consume_token(token)

    @property
    def over(self) -> bool:
        """Whether the answer is whole and nothing can be added."""
        return bool(self._matcher.is_stopped())


def _reason(matcher: Any) -> str:
    """Return what the library has against a form, without the places in its own notation."""
    error = str(matcher.get_error())
    if "NoExtension" in error:
        return "nothing can follow what is written"
    first = " ".join(re.split(r"\n\s*\d+ \| |<non-verbose/>", error)[0].split())
    return re.sub(r"^(at )?\d+\(\d+\): ", "", first)[:200]


def _as_json(schema: Mapping[str, Any]) -> str:
    """Return a schema as JSON.

    Raises:
        UsageError: it holds what JSON does not, or is too deep.
    """
    try:
        written = json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the JSON schema cannot be written as JSON: {error}", "give plain JSON values") from error
    check_text(SCHEMA, written)
    return written


def _quoted(regex: str) -> str:
    """Return a regular expression between slashes, as a terminal of Lark."""
    escaped = re.sub(r"(\\.)|/", lambda found: found[1] or "\\/", regex, flags=re.DOTALL)
    return "/" + escaped.replace("\n", "\\n") + "/"
