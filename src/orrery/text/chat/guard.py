"""The tokenizer of a chat: what looks like a control token is one, whatever its file calls it."""

import json
from functools import lru_cache
from typing import Any

from orrery.text.tokenizer import Tokenizer


def guarded(tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer with every added token a control token, save those that are words or white space.

    Files list control tokens as ordinary added tokens (``"special": false``), which the engine finds in any text,
    and after its normaliser: U+FF1C for ``<`` is enough. Added words of a subject stay what they are.
    """
    return tokenizer if all(map(_as_it_should_be, _added(tokenizer))) else _changed(tokenizer)


@lru_cache(maxsize=2)
def _changed(tokenizer: Tokenizer) -> Tokenizer:
    added = [token if _as_it_should_be(token) else {**token, "special": True} for token in _added(tokenizer)]
    return tokenizer.defined_by(json.dumps({**tokenizer.definition, "added_tokens": added}))


def _added(tokenizer: Tokenizer) -> list[dict[str, Any]]:
    return tokenizer.definition.get("added_tokens") or []


def _as_it_should_be(token: dict[str, Any]) -> bool:
    return bool(token.get("special")) or not _framed(token["content"])


def _framed(content: str) -> bool:
    """Say whether a token begins or ends with a sign: ``<think>``, ``[INST]``, ``User:``, but not ``COVID-19``."""
    text = content.replace("\u2581", " ").strip()
    return bool(text) and not (text[0].isalnum() and text[-1].isalnum())
