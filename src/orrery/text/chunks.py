"""Cut a long text where no piece can cross, so that encoding takes linear time and little memory."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from orrery.text import bpe, characters

CHUNK = 1 << 16
"""Characters encoded at once; longer only where a text has no place to cut."""

TOGETHER = 8

# After a letter or a digit, before whitespace: the patterns below always end a piece there.
CUT = re.compile(r"(?<=[^\W_])(?=\s)")

GPT2 = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}


def cuttable(definition: Mapping[str, Any]) -> bool:
    """Whether encoding the parts of `cut` one by one gives the same ids as encoding the whole text.

    Known for our own two pre-tokenizers and GPT-2's. A normaliser, or an added token that is matched inside
    text, could reach across a cut; such tokenizers read each text whole.
    """
    if definition.get("normalizer") or any(not token.get("special") for token in definition.get("added_tokens", [])):
        return False
    rule = dict(definition.get("pre_tokenizer") or {})
    return plain(rule) in (plain(GPT2), definition_of(bpe), definition_of(characters))


def groups(parts: Iterable[str]) -> Iterator[list[str]]:
    """Yield the parts a few at a time: enough for the engine's threads, not enough to need much memory."""
    remaining = iter(parts)
    while group := list(islice(remaining, TOGETHER)):
        yield group


def cut(text: str) -> Iterator[str]:
    """Yield consecutive parts of ``text`` that join to it."""
    start = 0
    while len(text) - start > CHUNK:
        place = CUT.search(text, start + CHUNK)
        if place is None:
            break
        yield text[start : place.start()]
        start = place.start()
    if start < len(text) or not text:
        yield text[start:]


def definition_of(kind: Any) -> Any:
    """Return the pre-tokenizer of one of our kinds, a module with ``pre_tokenizer()``, as ``plain`` writes it."""
    return plain(json.loads(kind.pre_tokenizer().__getstate__()))


def plain(rule: Any) -> Any:
    """Return a rule with its default written out, and without the setting that only moves reported offsets."""
    if isinstance(rule, dict):
        default = {"use_regex": True} if rule.get("type") == "ByteLevel" else {}
        return {key: plain(value) for key, value in (default | rule).items() if key != "trim_offsets"}
    return [plain(item) for item in rule] if isinstance(rule, list) else rule
