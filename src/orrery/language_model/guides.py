"""What a caller demands of an answer's text: a form, or words that must not stand in it."""

import atexit
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from orrery.generation.form_process import FOLLOWING
from orrery.generation.forms import FormsOfVocabularies
from orrery.generation.forms_apart import LATE
from orrery.generation.grammar import Form
from orrery.generation.guides import Begin, SpellingIndex, without
from orrery.generation.vocabulary import TokenVocabulary
from orrery.schema.writing import DEMANDS, DRAWING
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
        """Return the demands among a call's settings, and the others, which say how a token is chosen.

        Raises:
            TypeError: a name that is neither.
        """
        for name in settings.keys() - {*DEMANDS, *DRAWING}:
            raise TypeError(f"there is no argument {name!r}; there are {', '.join((*DRAWING, *DEMANDS))}")
        own = {name: settings[name] for name in DEMANDS if settings.get(name) is not None}
        return Demands.of(**own), {name: value for name, value in settings.items() if name not in DEMANDS}

    @property
    def given(self) -> dict[str, Any]:
        """The demands that are made, by the names of their arguments."""
        words = {"bad_words": self.bad_words} if self.bad_words else {}
        if self.form is None:
            return words
        form = {"regex": self.form.regex, "json_schema": self.form.schema, "grammar": self.form.grammar}
        return words | {name: value for name, value in form.items() if value is not None}


NO_DEMANDS = Demands()


Hold = Callable[[Form, TokenVocabulary], Begin]
"""Makes what begins the guide of an answer that is of a form."""


def held(form: Form, vocabulary: TokenVocabulary) -> Begin:
    """Return what begins the guide of an answer of a form, which a process of its own holds; errors as in `guides_of`.

    A form that is slow to begin with or to follow is so ended in its time: here nothing could.
    """
    return _forms().begin(form, vocabulary)


@lru_cache(maxsize=1)
def _forms() -> FormsOfVocabularies:
    """Return the processes of this one; an answer here waits until it is known whether it is whole."""
    forms = FormsOfVocabularies(glance=FOLLOWING + LATE)
    atexit.register(forms.close)
    return forms


_NOT_OURS: list[FormsOfVocabularies] = []
"""What a process has from the one that it was forked from, which alone may ask or end it."""


def _forked() -> None:
    if _forms.cache_info().currsize:
        atexit.unregister((forms := _forms()).close)
        _NOT_OURS.append(forms)
        _forms.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


def guides_of(tokenizer: Tokenizer, ends: frozenset[int], demands: Demands, hold: Hold = held) -> tuple[Begin, ...]:
    """Return what begins the guides of an answer, which one of ``ends`` ends.

    Raises:
        UsageError: the form cannot be read or is too large, or the tokenizer has no bytes for its tokens.
        MachineError: the library that holds forms is not installed.
    """
    guides: list[Begin] = []
    if demands.bad_words:
        guides.append(without(demands.bad_words, _index(tokenizer)))
    if demands.form is not None:
        guides.append(hold(demands.form, _vocabulary(tokenizer, ends)))
    return tuple(guides)


@lru_cache(maxsize=4)
def _spellings(tokenizer: Tokenizer) -> tuple[bytes, ...]:
    return tuple(spellings(tokenizer))


@lru_cache(maxsize=4)
def _index(tokenizer: Tokenizer) -> SpellingIndex:
    return SpellingIndex(_spellings(tokenizer))


@lru_cache(maxsize=4)
def _vocabulary(tokenizer: Tokenizer, ends: frozenset[int]) -> TokenVocabulary:
    return TokenVocabulary(_spellings(tokenizer), tokenizer.control, ends, drops_first_blank(tokenizer))
