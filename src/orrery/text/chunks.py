"""Cut a long text where no piece can cross, so that encoding takes linear time and little memory."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from tokenizers.pre_tokenizers import PreTokenizer

from orrery.text.algorithms import bpe, characters

CHUNK = 1 << 12
"""Characters of a part, more only where a text has no place to cut: few, so that no thread waits long for another."""

TOGETHER = 64
"""Parts that are encoded at once, on all cores."""

# After a letter, a digit or a mark that ends a clause, before whitespace: every rule below ends a piece there. Marks
# matter for scripts without blanks between words, where only a line's end is followed by whitespace. Only whitespace
# that everyone calls so: BERT's normaliser drops vertical tabs, and Python alone counts four other control characters.
CUT = re.compile(r"(?:(?<=[^\W_])|(?<=[.,;:!?\u3002\uff01\uff1f\u300d]))(?=[ \t\r\n\u3000])")
NEAR_THE_END = 1 << 12

GPT2 = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}
BERT = {"type": "BertPreTokenizer"}
WORDS = {"type": "WhitespaceSplit"}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}


def cuttable(definition: Mapping[str, Any]) -> bool:
    """Whether encoding the parts of `cut` one by one gives the same ids as encoding the whole text.

    Known for our own pre-tokenizers, GPT-2's and BERT's, with a normaliser that works character by character
    or, like BERT's, on a letter and its marks. An added token that is matched inside text could reach across a cut;
    tokenizers with one, and all others, read each text whole.
    """
    if any(not token.get("special") for token in definition.get("added_tokens", [])):
        return False
    if (definition.get("normalizer") or {}).get("type") not in (None, "Lowercase", "BertNormalizer"):
        return False
    known = (
        plain(GPT2),
        BERT,
        WORDS,
        *map(definition_of, (bpe.words(), bpe.marked_words(), characters.pre_tokenizer())),
    )
    first, *later = _steps(plain(definition.get("pre_tokenizer") or {}))
    return first in known and all(step["type"] == "Split" or step == BYTES for step in later)


def _steps(rule: Any) -> list[Any]:
    """Return the steps of a pre-tokenizer in order; a later one works inside the pieces of an earlier one."""
    return rule["pretokenizers"] if rule.get("type") == "Sequence" else [rule]


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


def word_counts(texts: Iterable[str], rule: PreTokenizer) -> Counter[str]:
    """Count the words into which a rule cuts texts, each text part by part."""
    counts: Counter[str] = Counter()
    for text in texts:
        for part in cut(text):
            counts.update(word for word, _ in rule.pre_tokenize_str(part))
    return counts


def last_cut(text: str) -> int | None:
    """Return the last place at which ``text`` may be cut, or None; no place is at its beginning or end."""
    for start in (max(0, len(text) - NEAR_THE_END), 0):
        places = [match.start() for match in CUT.finditer(text, start)]
        if places:
            return places[-1]
    return None


def definition_of(rule: PreTokenizer) -> Any:
    """Return a pre-tokenizer as ``plain`` writes it."""
    return plain(json.loads(rule.__getstate__()))


def plain(rule: Any) -> Any:
    """Return a rule with its default written out, and without the setting that only moves reported offsets."""
    if isinstance(rule, dict):
        default = {"use_regex": True} if rule.get("type") == "ByteLevel" else {}
        return {key: plain(value) for key, value in (default | rule).items() if key != "trim_offsets"}
    return [plain(item) for item in rule] if isinstance(rule, list) else rule
