"""What a caller demands of an answer's text: a form, or words that must not stand in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from orrery.generation.grammar import Form, Formed, Vocabulary
from orrery.generation.guides import Begin, without
from orrery.text.spellings import drops_first_blank, spellings
from orrery.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Demands:
    """What an answer must be.

    Attributes:
        bad_words: what must not stand in it, however tokens cut it.
        form: what all of it must look like.
    """

    bad_words: Sequence[str] = ()
    form: Form | None = None

    @staticmethod
    def of(
        bad_words: str | Sequence[str] = (),
        regex: str | None = None,
        json_schema: Mapping[str, Any] | None = None,
        grammar: str | None = None,
    ) -> "Demands":
        """Return the demands that a caller's arguments make."""
        words = (bad_words,) if isinstance(bad_words, str) else tuple(bad_words)
        given = any(part is not None for part in (regex, json_schema, grammar))
        return Demands(words, Form(regex, json_schema, grammar) if given else None)

    @staticmethod
    def taken_from(settings: Mapping[str, Any]) -> "tuple[Demands, dict[str, Any]]":
        """Return the demands among a call's settings, and the other settings."""
        names = ("bad_words", "regex", "json_schema", "grammar")
        own = {name: settings[name] for name in names if settings.get(name) is not None}
        return Demands.of(**own), {name: value for name, value in settings.items() if name not in names}

    @property
    def given(self) -> dict[str, Any]:
        """The demands that are made, by the names of their arguments."""
        form = self.form or Form(grammar="")
        found = {"regex": form.regex, "json_schema": form.schema, "grammar": form.grammar, "bad_words": self.bad_words}
        return {name: value for name, value in found.items() if value}


NO_DEMANDS = Demands()


def guides_of(tokenizer: Tokenizer, ends: frozenset[int], demands: Demands) -> tuple[Begin, ...]:
    """Return what begins the guides of an answer, which one of ``ends`` ends.

    Raises:
        UsageError: the form cannot be read or is too large, or the tokenizer has no bytes for its tokens.
        MachineError: the library that holds forms is not installed.
    """
    found: list[Begin] = []
    if demands.bad_words:
        found.append(without(demands.bad_words, _spellings(tokenizer)))
    if demands.form is not None:
        found.append(Formed.begin(demands.form, _vocabulary(tokenizer, ends)).copy)
    return tuple(found)


@lru_cache(maxsize=4)
def _spellings(tokenizer: Tokenizer) -> tuple[bytes, ...]:
    return tuple(spellings(tokenizer))


@lru_cache(maxsize=4)
def _vocabulary(tokenizer: Tokenizer, ends: frozenset[int]) -> Vocabulary:
    return Vocabulary(_spellings(tokenizer), tokenizer.control, ends, drops_first_blank(tokenizer))
