"""What a form may be: the library that holds answers to it ends the whole program over some, before any error."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orrery.errors import UsageError

LONGEST = 64 << 10
"""Characters of a regular expression or a grammar, and values of a schema."""
LONGEST_SCHEMA = 256 << 10
"""Characters of a schema written as JSON; the library reads so much in a tenth of a second."""
MOST_PARTS = 600
"""Objects of a schema, or of each of its alternatives where none points out of itself: those of 128 functions.

llguidance 1.9 follows references by recursion: with 8 MB of stack, 1,600 to 3,000 in a chain, by what stands between
them, end the program (measured 2026-11-24); nesting and chains have no more links than objects.
"""
MOST_RULES = 500
"""Rules of a grammar; of a chain of 5,000 the same is true."""
SCHEMA = "JSON schema"
_POINTING = {"$ref", "$id", "$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef"}
EXACT = 2**53
"""The whole numbers up to here, with either sign, are those that every reader of JSON keeps; a constant of -(2**63 - 1)
ends the program.
"""
_RULE = re.compile(r"^[ \t]*[?!]?\w+[^\n:\"/]*:", re.MULTILINE)


def check_text(name: str, text: str) -> None:
    """Refuse a regular expression, a grammar or a schema that is too large.

    Raises:
        UsageError: it is.
    """
    most = LONGEST_SCHEMA if name == SCHEMA else LONGEST
    if len(text) > most:
        raise UsageError(f"a {name} of {len(text):,} characters", f"give at most {most:,}")
    if name == "grammar" and (rules := len(_RULE.findall(text))) > MOST_RULES:
        raise UsageError(f"a grammar of {rules:,} rules", f"give at most {MOST_RULES}")


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse a schema with too many parts, or with whole numbers that readers of JSON do not keep.

    Raises:
        UsageError: it is such a one.
    """
    seen = 0
    for part in _apart(schema):
        parts = 0
        for value in _values(part):
            seen += 1
            parts += isinstance(value, Mapping)
            if isinstance(value, int) and abs(value) > EXACT:
                raise UsageError(f"a JSON schema with the number {str(value)[:40]}", f"whole numbers reach to {EXACT}")
            if parts > MOST_PARTS or seen > LONGEST:
                message = f"a JSON schema of more than {MOST_PARTS} objects"
                raise UsageError(message, "leave out what the answer needs not")


def _values(schema: Any) -> Iterator[Any]:
    """Yield all values of a schema, itself first."""
    left = [schema]
    while left:
        value = left.pop()
        yield value
        left.extend(value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ())


def _apart(schema: Mapping[str, Any]) -> Sequence[Any]:
    """Return the alternatives of a schema that has nothing else, where no chain leads from one to another."""
    alternatives = schema.get("anyOf")
    if not isinstance(alternatives, list | tuple) or len(schema) > 1 or len(alternatives) > MOST_PARTS:
        return [schema]
    places = [f"#/anyOf/{number}/" for number in range(len(alternatives))]
    return alternatives if all(map(_is_closed, alternatives, places)) else [schema]


def _is_closed(part: Any, place: str) -> bool:
    """Say whether every reference in a part of a schema points into the part itself."""
    left = [part]
    while left:
        value = left.pop()
        if isinstance(value, Mapping):
            for key, inner in value.items():
                if key in _POINTING and isinstance(inner, str) and not (key == "$ref" and inner.startswith(place)):
                    return False
                if key != "enum" or isinstance(inner, Mapping):  # a list of data, or a property of that name
                    left.append(inner)
        elif isinstance(value, list | tuple):
            left.extend(value)
    return True
