"""Which tokens of a vocabulary begin a word: whole words can then be found in rows of ids."""

from collections.abc import Iterator, Mapping
from typing import Any

from orrery.errors import UsageError
from orrery.text.tokenizer import Tokenizer

_BLANKS = ("\u2581", "\u0120", "\u010a", "\u0109", " ", "\n", "\t", "\r")
"""What stands before a word: Metaspace's blank; those that byte-level vocabularies spell; these."""


def word_starts(tokenizer: Tokenizer) -> list[bool]:
    """Return for each id whether its token begins a word.

    WordPiece marks what continues a word; a vocabulary of words has nothing else. Where a blank is part of a token, a
    token continues a word if it begins with a letter or a digit, or with a byte of another character.

    Raises:
        UsageError: the vocabulary marks the ends of words, which does not tell where a word begins.
    """
    model = tokenizer.definition["model"]
    if model.get("end_of_word_suffix"):
        hint = "leave objective.whole_words out, or use another kind of tokenizer"
        raise UsageError("the tokenizer marks where words end, and whole words are found by where they begin", hint)
    spelt = [tokenizer.token(id) for id in range(tokenizer.size)]
    prefix = model.get("continuing_subword_prefix")
    if prefix:
        return [not token.startswith(prefix) for token in spelt]
    kinds = set(_kinds(tokenizer.definition.get("pre_tokenizer")))
    if kinds & {"WhitespaceSplit", "Whitespace"}:
        return [True] * tokenizer.size
    bytewise = "ByteLevel" in kinds
    return [not _continues(token, bytewise) for token in spelt]


def _continues(token: str, bytewise: bool) -> bool:
    """Say whether a token goes on with the word before it; bytes beyond ASCII are taken as letters."""
    first = token[:1]
    if not first or first in _BLANKS:
        return False
    return first.isalnum() or (bytewise and ord(first) > 127)


def _kinds(rule: Mapping[str, Any] | None) -> Iterator[str]:
    """Yield the kinds of a pre-tokenizer, or of those of a sequence."""
    if rule is not None:
        yield rule["type"]
        for inner in rule.get("pretokenizers", ()):
            yield from _kinds(inner)
