"""Answers of a form: a regular expression, a JSON schema or a grammar, held by the library llguidance."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from orrery.errors import UsageError
from orrery.generation.closed_schema import closed
from orrery.generation.form_limits import SCHEMA, check_schema, check_text
from orrery.generation.guides import Guide
from orrery.generation.vocabulary import TokenVocabulary, is_whole, matcher_of, reason_of

SPACES = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}
"""Where JSON may have blanks: as json.dumps writes it, since a model may go on with blanks for ever."""


@dataclass(frozen=True)
class Form:
    """What an answer must look like: exactly one of the three.

    Attributes:
        regex: a regular expression for the whole answer, without look-around and back-references.
        schema: a JSON schema; ``{}`` stands for any JSON object. Objects that list properties have no others, unless
            ``additionalProperties`` says so.
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
        """Return the form as the library reads it; ``blank`` lets a blank that decoding drops stand before it.

        Raises:
            UsageError: it holds what no UTF-8 can.
        """
        if self.regex is not None:
            start = f"start: {'BLANK? ' if blank else ''}ANSWER\nANSWER: {_quoted(self.regex)}\n"
        elif self.schema is not None:
            schema = _as_json(self.schema or {"type": "object"})
            start = f"start: {'BLANK? ' if blank else ''}answer\nanswer: %json {schema}\n"
        else:
            return _whole(str(self.grammar))
        return _whole(start + ('BLANK: " "\n' if blank else ""))


def _whole(text: str) -> str:
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise UsageError("the form holds half a character (a lone surrogate)", "leave it out, or write the whole one")
    return text


@final
class Formed(Guide):
    """Only tokens by which the answer can still become one of the form; the end where it is one."""

    def __init__(self, matcher: Any, size: int) -> None:
        self._matcher, self._size = matcher, size

    @staticmethod
    def begin(form: Form, vocabulary: TokenVocabulary) -> "Formed":
        """Return the guide of an answer that begins.

        Raises:
            UsageError: the form cannot be read, or compiling it takes too long.
        """
        matcher = matcher_of(form.lark(vocabulary.blank), vocabulary)
        if matcher.is_error():
            raise unusable(reason_of(matcher))
        return Formed(matcher, vocabulary.size)

    def copy(self) -> "Formed":
        """Return a guide in the same state."""
        return Formed(self._matcher.deep_copy(), self._size)

    def allowed(self) -> Bool[Tensor, "V"]:
        """Return which tokens lead on.

        Raises:
            UsageError: the form became too hard to follow.
        """
        bits = self._matcher.compute_bitmask()
        if self._matcher.is_error():
            raise unfollowed(reason_of(self._matcher))
        return unpacked(bits, self._size)

    def push(self, token: int) -> None:
        """Take a token; the end token too."""
        self._matcher.consume_token(token)

    @property
    def over(self) -> bool:
        """Whether the answer is whole and nothing can be added."""
        return is_whole(self._matcher)


def unusable(reason: str) -> UsageError:
    """Return the refusal of a form that no answer can begin with."""
    return UsageError(f"this form cannot be used: {reason}", "correct the regex, schema or grammar")


def unfollowed(reason: str) -> UsageError:
    """Return the error of an answer whose form became too hard."""
    return UsageError(f"this form cannot be followed: {reason}", "simplify it")


def unpacked(bits: bytes, size: int) -> Bool[Tensor, "V"]:
    """Return which of the first ``size`` tokens are set among the library's bits."""
    return torch.from_numpy(np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")[:size].astype(bool))


def _as_json(schema: Mapping[str, Any]) -> str:
    """Return a schema as JSON, its objects closed.

    Raises:
        UsageError: it holds what JSON does not, or is too deep.
    """
    try:
        text = json.dumps({"x-guidance": SPACES, **closed(schema)}, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the JSON schema cannot be written as JSON: {error}", "give plain JSON values") from error
    check_text(SCHEMA, text)
    return text


def _quoted(regex: str) -> str:
    """Return a regular expression between slashes, as a terminal of Lark."""
    escaped = re.sub(r"(\\.)|/", lambda match: match[1] or "\\/", regex, flags=re.DOTALL)
    return "/" + escaped.replace("\n", "\\n") + "/"
