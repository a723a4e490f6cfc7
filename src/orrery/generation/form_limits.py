"""What a form may be: the library that holds answers to it ends the whole program over some, before any error."""

import re
from collections.abc import Mapping
from typing import Any

from orrery.errors import UsageError

LONGEST = 64 << 10
"""Characters of a regular expression, a grammar, or a schema written as JSON."""
MOST_PARTS = 600
"""Objects of a schema. llguidance 1.9 follows references by recursion: with 8 MB of stack, 1,600 to 3,000 in a chain,
by what stands between them, end the program (measured 2026-11-24); nesting and chains have no more links than objects.
"""
MOST_RULES = 500
"""Rules of a grammar; of a chain of 5,000 the same is true."""
EXACT = 2**53
"""The whole numbers up to here, with either sign, are those that every reader of JSON keeps; a constant of -(2**63 - 1)
ends the program.
"""
_RULE = re.compile(r"^[ \t]*[?!]?\w+[^\n:\"/]*:", re.MULTILINE)


def check_text(name: str, text: str) -> None:
    """Refuse a regular expression or a grammar that is too large.

    Raises:
        UsageError: it is.
    """
    if len(text) > LONGEST:
        raise UsageError(f"a {name} of {len(text):,} characters", f"give at most {LONGEST:,}")
    if name == "grammar" and (rules := len(_RULE.findall(text))) > MOST_RULES:
        raise UsageError(f"a grammar of {rules:,} rules", f"give at most {MOST_RULES}")


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse a schema with too many parts, or with whole numbers that readers of JSON do not keep.

    Raises:
        UsageError: it is such a one.
    """
    left: list[Any] = [schema]
    seen = parts = 0
    while left:
        value, seen = left.pop(), seen + 1
        if isinstance(value, int) and abs(value) > EXACT:
            raise UsageError(f"a JSON schema with the number {str(value)[:40]}", f"whole numbers reach to {EXACT}")
        if isinstance(value, Mapping):
            parts += 1
            left.extend(value.values())
        elif isinstance(value, list | tuple):
            left.extend(value)
        if parts > MOST_PARTS or seen > LONGEST:
            raise UsageError(f"a JSON schema of more than {MOST_PARTS} objects", "leave out what the answer needs not")
