"""JavaScript without its comments and needless blanks: what a browser needs of a source that people read."""

import re
from collections.abc import Iterator

_TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<line>\n[ \t\n]*)
    |(?P<blank>[ \t]+)
    |(?P<word>[\w$#]+)
    |(?P<template>`)
    |(?P<open>\{)
    |(?P<close>\})
    |(?P<slash>/)
    |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_REGEX = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
_TEMPLATE = re.compile(r"(?:[^`\\$]|\\.|\$(?!\{))*(`|\$\{)", re.DOTALL)
_BEFORE_REGEX = frozenset("(,=:[!&|?{};+-*%<>~^")
"""After these signs a slash begins a regular expression; after a name, a number or a bracket that closes it divides."""
_WORDS = frozenset(["return", "typeof", "case", "in", "of", "delete", "void", "throw", "new", "do", "else", "await"])


_JOINING = frozenset(("++", "--", "//", "/*", "<!"))
"""Two signs that mean another thing without the blank between them: a step, a comment."""


def stripped(source: str) -> str:
    """Return a module without comments, needless blanks and empty lines; strings, templates and expressions stay whole.

    Lines stay lines, since the end of one may end a statement. After a bracket ``)`` a slash is taken for a division.

    Raises:
        ValueError: a template or a regular expression has no end.
    """
    return "".join(_kept(source)).strip() + "\n"


def _kept(source: str) -> Iterator[str]:
    place, before, bare = 0, "", True
    depths: list[int] = []  # of the templates around this place, each the number of brackets open in it
    while place < len(source):
        match = _TOKEN.match(source, place)
        assert match is not None
        kind, text = str(match.lastgroup), match[0]
        if kind == "slash" and (not before or before in _WORDS or before[-1] in _BEFORE_REGEX):
            text = _whole(_REGEX, source, place)
        elif kind == "template" or (kind == "close" and depths and depths[-1] == 0):
            depths = depths if kind == "template" else depths[:-1]
            text += _whole(_TEMPLATE, source, place + 1)
            depths = [*depths, 0] if text.endswith("${") else depths
        elif kind in ("open", "close") and depths:
            depths[-1] += 1 if kind == "open" else -1
        place += len(text)
        if kind == "line" or (kind == "comment" and "\n" in text):
            text, bare = ("" if bare else "\n"), True
        elif kind == "comment" or (kind == "blank" and (bare or _needless(before, source[place : place + 1]))):
            text = ""
        else:
            bare = False
        before = before if kind in ("line", "blank", "comment") else text
        yield text


def _needless(before: str, after: str) -> bool:
    """Say whether a blank between these two only serves the eye: it parts neither words nor signs that would join."""
    last = before[-1:]
    words = all(one.isalnum() or one in "_$#." for one in (last, after) if one)
    return not words and last + after not in _JOINING


def _whole(pattern: re.Pattern[str], source: str, place: int) -> str:
    match = pattern.match(source, place)
    if match is None:
        raise ValueError(f"no end of what begins at {source[place : place + 30]!r}")
    return match[0]
