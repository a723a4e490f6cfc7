"""What a tokenizer.json may ask for: rules that double a text and patterns that never end are refused at once."""

import base64
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import tokenizers

from orrery.errors import ModelFileError
from orrery.text.sentencepiece.charsmap import LONGEST_REPLACEMENT as LONGEST_REPLACED
from orrery.text.sentencepiece.charsmap import longest_replacement

GROWTH = 64
"""Times that all replacements together may lengthen a text; those of published tokenizers do so three times."""
LONGEST_REPLACEMENT = 10_000
LONGEST_PATTERN = 2_000_000
"""A tree of all pairs of a vocabulary, by which our bigram tokenizers cut, has a hundred thousand characters."""
LONGEST_WORD = 10_000
"""Characters of a word that WordPiece looks up whole, in time that grows with their square; it has 100 by default."""
MOST_AROUND = 1_000
"""Tokens that a template puts around a text."""
MOST_RULES = 64
"""Rules of one kind, one after another: each may lengthen a text a little."""
LONGEST_AFFIX = 1_000
"""Characters that a model puts before or behind the pieces of a word, again and again; published ones put two."""
SECONDS = 0.02
"""Of the processor, for the quickest of three tries to part a short text. Published patterns take 0.2 milliseconds."""
PUMPED = (12, 16, 20, 24, 400)
"""Repetitions of a letter: where a pattern is exponential in them, 20 take a thousand times as long as 10."""

_HINT = "it would take all memory or time; take the tokenizer from its origin, or remove the rule"


def check_rules(definition: Mapping[str, Any]) -> None:
    """Refuse rules that lengthen a text without bound, before the library has applied them to added tokens.

    Raises:
        ModelFileError: names the rule.
    """
    growth = 1.0
    for place in ("normalizer", "pre_tokenizer", "decoder"):
        rules = list(_rules(definition.get(place)))
        if len(rules) > MOST_RULES:
            raise _refusal(f"'{place}' has {len(rules):,} rules, more than {MOST_RULES}")
        growth = 1.0 if place == "decoder" else growth  # what is parted is what the normaliser left
        for rule in rules:
            growth *= _growth(place, rule)
            if growth > GROWTH:
                raise _refusal(f"'{place}' makes a text {growth:,.0f} times as long, more than {GROWTH}")
    around = sum(_around(rule) for rule in _rules(definition.get("post_processor")))
    if around > MOST_AROUND:
        raise _refusal(f"'post_processor' puts {around:,} tokens around a text, more than {MOST_AROUND:,}")
    for key in ("continuing_subword_prefix", "end_of_word_suffix"):
        affix = definition["model"].get(key)
        if isinstance(affix, str) and len(affix) > LONGEST_AFFIX:
            raise _refusal(f"'{key}' has {len(affix):,} characters, more than {LONGEST_AFFIX:,}")
    longest = definition["model"].get("max_input_chars_per_word")
    if isinstance(longest, int) and longest > LONGEST_WORD:
        raise _refusal(f"'max_input_chars_per_word' is {longest:,}, more than {LONGEST_WORD:,}")


def check_patterns(definition: Mapping[str, Any]) -> None:
    """Refuse patterns that take long for a short text.

    Raises:
        ModelFileError: names the pattern.
    """
    for place in ("normalizer", "pre_tokenizer", "decoder"):
        for rule in _rules(definition.get(place)):
            pattern = rule.get("pattern")
            regex = pattern.get("Regex") if isinstance(pattern, Mapping) else None
            if isinstance(regex, str):
                _check_pattern(place, regex)


def _check_pattern(place: str, regex: str) -> None:
    what = f"the pattern {regex[:60]!r} of '{place}'"
    if len(regex) > LONGEST_PATTERN:
        raise _refusal(f"{what} has {len(regex):,} characters, more than {LONGEST_PATTERN:,}")
    try:
        # Parting is what both the rules do with a pattern that part a text and those that replace in it.
        split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(regex), "isolated")
        slow = next((text for text in _pumped(regex) if _seconds(split, text) > SECONDS), None)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # a panic of the Rust side is no Exception
        raise _refusal(f"{what} cannot be used: {' '.join(str(error).split())[:200]}") from None
    if slow is not None:
        raise _refusal(f"{what} takes too long for {len(slow)} characters, such as {slow[:12]!r}")


def _seconds(split: Any, text: str) -> float:
    """Return the processor's seconds of a try; where they are many, of the quickest of three.

    Not those of a clock: on a machine that others use a thread may wait for longer than a bad pattern takes.
    """
    timings = []
    for _ in range(3):
        began = time.thread_time()
        split.pre_tokenize_str(text)
        timings.append(time.thread_time() - began)
        if timings[-1] <= SECONDS:
            break
    return min(timings)


def _pumped(regex: str) -> Iterator[str]:
    """Yield short texts first: one letter or two again and again, then one that may not fit."""
    letters = list(dict.fromkeys(re.findall(r"(?<!\\)[^\W_]", regex)))[:8]
    singles = list(dict.fromkeys([*letters, *"ax1 .\n", "\u00e9"]))
    pumps = [*singles, *(one + other for one, other in pairwise(letters))]
    literals = re.findall(r"(?<!\\)[^\W_]|[-=:;,<>@#%&~\"'/_]", regex)
    ends = ["!", "\u0001", *("!" + literal for literal in literals[-2:])]  # some are looked for before all else
    for times in PUMPED:
        for pump in pumps:
            for end in ends:
                yield pump * times + end


def _rules(rule: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the rules of a sequence, those of sequences within it too."""
    waiting = [rule]
    while waiting:
        one = waiting.pop(0)
        if not isinstance(one, Mapping):
            continue
        inner = [part for name in ("normalizers", "pretokenizers", "decoders", "processors")
                 if isinstance(one.get(name), Sequence) for part in one[name]]  # fmt: skip
        if not inner:
            yield one
        waiting = [*inner, *waiting]


def _growth(place: str, rule: Mapping[str, Any]) -> float:
    """Return how many times as long as a text what one rule makes of it can be; raise for one that is too long."""
    if rule.get("type") == "ByteLevel" and place != "decoder":
        return 2.0  # the letter of a space or of a byte beyond ASCII has two bytes
    if rule.get("type") == "Precompiled":
        return _precompiled(place, rule)
    content = rule.get("content", rule.get("prepend", ""))
    if not isinstance(content, str) or rule.get("type") not in ("Replace", "Prepend"):
        return 1.0
    if len(content) > LONGEST_REPLACEMENT:
        raise _refusal(f"'{place}' puts {len(content):,} characters in, more than {LONGEST_REPLACEMENT:,}")
    pattern = rule.get("pattern")
    replaced = pattern.get("String") if isinstance(pattern, Mapping) else None
    if rule["type"] == "Prepend":
        return 1.0  # once a text: `MOST_RULES` of them are no more than a long text
    return max(1.0, len(content) / max(1, len(replaced) if isinstance(replaced, str) else 1))


def _precompiled(place: str, rule: Mapping[str, Any]) -> float:
    """Return the growth by SentencePiece's rules, which replace a byte or more."""
    try:
        longest = longest_replacement(base64.b64decode(rule.get("precompiled_charsmap") or ""))
    except (TypeError, ValueError):  # the library says what is wrong with it
        return 1.0
    if longest > LONGEST_REPLACED:
        raise _refusal(f"'{place}' puts {longest:,} bytes in for a few, more than {LONGEST_REPLACED}")
    return max(1.0, longest / 3)  # the longest of NFKC, 33 bytes, stands for one character of three


def _around(rule: Mapping[str, Any]) -> int:
    """Return how many tokens a template puts around a text; the text itself counts from its second time on, as many."""
    special = rule.get("special_tokens")
    tokens = {name: len(one.get("ids") or ()) for name, one in special.items() if isinstance(one, Mapping)} \
        if isinstance(special, Mapping) else {}  # fmt: skip
    most = 0
    for form in ("single", "pair"):
        parts = [part for part in rule.get(form) or () if isinstance(part, Mapping)]
        named = [json.dumps(part["Sequence"].get("id")) for part in parts if isinstance(part.get("Sequence"), Mapping)]
        ids = [part["SpecialToken"].get("id") for part in parts if isinstance(part.get("SpecialToken"), Mapping)]
        again = (1 + MOST_AROUND) * (len(named) - len(set(named)))
        most = max(most, again + sum(tokens.get(id, 1) if isinstance(id, str) else 1 for id in ids))
    return most


def _refusal(what: str) -> ModelFileError:
    return ModelFileError(f"tokenizer.json: {what}", _HINT)
