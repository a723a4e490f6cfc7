"""JSON of strangers: no key twice, no number that is none, and the time that its length deserves."""

import gc
import json
import math
from typing import Any, NoReturn


def parse(text: str | bytes) -> Any:
    """Return what a text says.

    The collector rests meanwhile: it would look at millions of young lists again and again, and make a file that is
    parsed in half a second one of four.

    Raises:
        ValueError: it is not JSON, has a key twice, NaN or an infinite number.
        RecursionError: it is nested too deeply.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number, parse_float=_finite)
    finally:
        if was_enabled:
            gc.enable()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs as a dictionary; two readers of a key that comes twice would see two things."""
    content = dict(pairs)
    if len(content) < len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f"the key {twice[:100]!r} comes twice")
    return content


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:40]} is beyond all numbers")
    return number
