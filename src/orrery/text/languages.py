"""The languages of a tokenizer for many (M2M-100, NLLB, mBART): a token around a source, one before a target."""

import json
import re
from functools import lru_cache

from orrery.errors import UsageError
from orrery.text.tokenizer import NO_ID, Tokenizer

_LANGUAGE = re.compile(r"[\w-]+")


def language_token(tokenizer: Tokenizer, language: str) -> int:
    """Return the id of a language: ``fr`` for ``__fr__``, ``fra_Latn``, ``fr_XX``.

    Raises:
        UsageError: the tokenizer has no such language.
    """
    for name in (f"__{language}__", language):
        # Marks such as </s> and <mask> are control tokens too, and stand in brackets.
        if (id := tokenizer.id(name)) is not None and id in tokenizer.control and _LANGUAGE.fullmatch(name):
            return id
    around = [tokenizer.token(id) for id in _languages(tokenizer)]
    known = f"spell it as {around[0]}" if around else "this tokenizer has none; Marian's texts open with >>fra<<"
    raise UsageError(f"no language {language[:40]!r}", known)


def knows_languages(tokenizer: Tokenizer) -> bool:
    """Say whether the tokenizer puts the token of a language around a source."""
    return len(_languages(tokenizer)) == 1


@lru_cache(8)  # a quarter of a million tokens take their time, and each row of a pipeline asks
def reading(tokenizer: Tokenizer, language: str) -> Tokenizer:
    """Return the tokenizer with the token of another language around its texts.

    Raises:
        UsageError: it has no such language, or puts none around texts.
    """
    wanted, present = language_token(tokenizer, language), _languages(tokenizer)
    if not knows_languages(tokenizer):
        raise UsageError("this tokenizer puts no language around a source", "leave the source's language away")
    old, new = tokenizer.token(present[0]), tokenizer.token(wanted)
    rule = json.dumps(tokenizer.definition["post_processor"]).replace(json.dumps(old), json.dumps(new))
    changed = json.loads(rule)
    changed["special_tokens"][new] = {"id": new, "ids": [wanted], "tokens": [new]}
    return tokenizer.defined_by(json.dumps({**tokenizer.definition, "post_processor": changed}, ensure_ascii=False))


def _languages(tokenizer: Tokenizer) -> list[int]:
    """Return the special tokens around a text that neither begin nor end it."""
    others = {NO_ID, *(tokenizer.id(token) for token in tokenizer.roles.values())}
    return [id for id in tokenizer.around([NO_ID]).ids if id not in others]
