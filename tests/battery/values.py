"""Values by type: what stands in the place of a number, a word, a path, and whether it can mean anything there."""

import re
import types
import typing
from collections.abc import Iterable
from typing import Any, Literal

HUGE = ("9223372036854775808", "18446744073709551616", "1" + "0" * 30, "9" * 5000)
NO_NUMBER = (
    "",
    "abc",
    "true",
    "[1]",
    "{a: 1}",
    "1,5",
    "0x",
    "null0",
    "--",
    "\u0663\u0663x",
    "1\u2028",
    "two\nlines",
    "\udcff",
)
INTEGERS = (*NO_NUMBER, *HUGE, "nan", "inf", "-inf", "1.5", "-1.5", "-9223372036854775809", "1e400", "2.0000001")
LARGE = "2147483647"
"""In range nearly everywhere, and too much for any machine."""
SMALL = ("0", "-1", "-2147483649")
"""No number of things; 0 is one here and there, see ``MAY_BE_ZERO`` where cases are made."""
FLOATS = (*NO_NUMBER, "nan", "inf", "-inf", "1e400", "-1e400", "9" * 5000)
NEGATIVE = ("-1", "-0.5", "-1e-300")
WORDS = ("", "\udcff\udcfe", "\x1b[31m", "x" * 5000, "..", "\U0001f642", "--", "a\nb", "%s", "{}", "../../x",
         "(", "a=:", "\u202e\u0000"[:1], "-", "@", "hf:", "hf:a b/c", "hf:../x")  # fmt: skip
"""For names of things that are looked up: none of these is one."""
LONG = "n" * 300
MISSING_FILES = ("missing", "folder/mine.txt/below", "dangling", "loop", LONG, "\udcff", "", "/proc/nothing", "a\nb")
WRONG_FILES = ("folder", "binary", "empty", "/dev/null", "/dev/zero", "/proc/self/mem", "pipe")
UNWRITABLE = (
    "text.txt/below", "text.txt/below/more", "/proc/x", "/proc/self/x/y", LONG, f"folder/{LONG}/x", "loop", "loop/x",
    "/dev/full/x", "/sys/x", "",
)  # fmt: skip
"""Where nothing can be written, whoever asks."""


def kinds(annotation: Any) -> set[type | str]:
    """Return what an annotation allows, without None: int, float, bool, str, Path, "literal", "many"."""
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return kinds(inner[0])
    if origin in (typing.Union, types.UnionType):
        return set().union(*(kinds(one) for one in inner)) - {type(None)}
    if origin is Literal:
        return {"literal"}
    if origin in (tuple, list):
        return {"many"} | kinds(inner[0])
    return {annotation} if isinstance(annotation, type) else set()


def numbers(kind: type) -> tuple[str, ...]:
    """Return words that are no number of this kind."""
    return INTEGERS if kind is int else FLOATS


class Spread:
    """Some of many values for each place, the next ones for the next place, so that all of them have a turn."""

    def __init__(self, count: int) -> None:
        self.count, self.next = count, 0

    def some(self, given: Iterable[Any]) -> list[Any]:
        """Return the next ``count`` of the values, which go round."""
        values = list(given)
        chosen = [values[(self.next + i) % len(values)] for i in range(min(self.count, len(values)))] if values else []
        self.next += self.count
        return chosen


def short(value: str) -> str:
    """Return a value as the name of a case shows it."""
    shown = re.sub(r"[^ -~]", lambda match: f"\\x{ord(match[0]):x}", value)
    return shown if len(shown) <= 40 else f"{shown[:20]}...({len(value)})"
