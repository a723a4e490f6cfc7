"""Where an answer stands in a field of the factbook: each finder returns (start, end), or nothing."""

import re
from collections.abc import Callable

Span = tuple[int, int]
Find = Callable[[str], Span | None]

_NUMBER = r"-?\d[\d,]*(?:\.\d+)?(?: (?:thousand|million|billion|trillion))?"
_UNCERTAIN = re.compile(r"^(?:other|unspecified|none|unknown|unaffiliated|non|no |less|more|mixed/)", re.IGNORECASE)
_SHARE = re.compile(r"([^,;%]+?)\s+(\d+(?:\.\d+)?)%")
_BORDER = re.compile(r"(?:^|;)\s*([^;\d]+?)\s+(\d[\d,]*(?:\.\d+)? km)")
_NO_ANSWER = re.compile(
    r"^(?:none|unknown|no |not |NA\b|n/a|see |varies|similar|the |same|sometimes|formerly|almost)", re.IGNORECASE
)
_INSIDE = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
LONGEST = 12
"""Words of an answer that is no number."""


def matching(pattern: str) -> Find:
    """Return what finds the first group of a pattern, at the start of a field."""
    compiled = re.compile(pattern)

    def find(text: str) -> Span | None:
        match = compiled.match(text)
        return match.span(1) if match else None

    return find


count = matching(rf"({_NUMBER})(?= \(|$|;| total)")
money = matching(r"(-?\$" + _NUMBER.removeprefix("-?") + ")")
percent = matching(r"(-?\d+(?:\.\d+)?%)")
rate = matching(r"(-?\d+(?:\.\d+)?) ")
size = matching(rf"({_NUMBER} (?:sq km|km|m|years|kWh|kW|metric tonnes))(?![\w/])")
date = matching(r"(\d{1,2} (?:[A-Z][a-z]+) \d{4})")
quoted = matching(r'[“"]([^"“”]+)[”"]')
freed_from = matching(r"\d{1,2} [A-Z][a-z]+ \d{4} \(from (?:the )?([^;)]+)\)")
peak = matching(r"([^\d;()]*[^\d;()\s]) -?\d[\d,.]* m$")
height = matching(r"[^\d;()]*[^\d;()\s] (-?\d[\d,.]* m)$")
time_zone = matching(r"(UTC(?:[+-]\d[\d.:]*)?)")
holiday = matching(r"([^,;()]+?)(?: \([^()]*\))?, ")
day = matching(r"[^,;()]+(?: \([^()]*\))?, (\d{1,2} [A-Z][a-z]+)")
unit = matching(r"([^()]+?) \([A-Z]{3}\)")
code = matching(r"[^()]+ \(([A-Z]{3})\)")
age = matching(r"(\d\d years) of age")
person = matching(r"((?:[^;()\s]+ ){1,8}[^;()\s]+) \(since")
domain = matching(r"(\.[a-z]{2})$")


def words(text: str) -> Span | None:
    """Find the field up to its first bracket or semicolon, where that is short and says something."""
    match = re.match(r"[^;(\[]+", text)
    answer = match.group().rstrip(" ,.") if match else ""
    if not answer or len(answer.split()) > LONGEST or _NO_ANSWER.match(answer):
        return None
    return 0, len(answer)


def first(text: str) -> Span | None:
    """Find what stands before the first comma, bracket or semicolon, where that is short and says something."""
    return words(text.partition(",")[0])


def listed(text: str) -> Span | None:
    """Find a list of things up to the year it is of, without its last bracket, where it has two or more."""
    match = re.match(r"[^;(\[]+", text)
    answer = match.group().rstrip(" ,.") if match else ""
    rest = text[len(answer) :].strip()
    has_no_rest = not rest or re.fullmatch(r"\(\d{4}[^()]*\)", rest)
    if not has_no_rest or "," not in answer or len(answer.split()) > 2 * LONGEST or _NO_ANSWER.match(answer):
        return None
    return 0, len(answer)


def largest(text: str) -> Span | None:
    """Find the name before the largest share, brackets apart, where no other is as large and it is no rest."""
    bare = _INSIDE.sub(lambda match: " " * len(match.group()), text)
    while _INSIDE.search(bare):
        bare = _INSIDE.sub(lambda match: " " * len(match.group()), bare)
    shares = [(float(match[2]), match.start(1), match[1]) for match in _SHARE.finditer(bare)]
    if len(shares) < 2 or "(" in bare or ")" in bare:
        return None
    top = max(shares)
    name = top[2].strip()
    start = top[1] + len(top[2]) - len(top[2].lstrip())
    alone = sum(share == top[0] for share, _, _ in shares) == 1
    if not alone or _UNCERTAIN.match(name) or "  " in name or len(name.split()) > 5:
        return None
    return start, start + len(name)


def official(text: str) -> Span | None:
    """Find the only language that is called official."""
    matches = re.findall(r"\(official", text)
    if len(matches) != 1:
        return None
    one = re.search(r"(?:^|[,;] )([A-Z][\w'/-]*(?: [A-Z][\w'/-]*)*) \(official", text)
    return one.span(1) if one else None


def borders(text: str) -> list[tuple[str, Span, Span, float]]:
    """Return (neighbour, where it stands, where the length stands, the length in km) of each border."""
    neighbours = []
    for one in _BORDER.finditer(_INSIDE.sub(lambda inside: " " * len(inside.group()), text)):
        name = " ".join(text[slice(*one.span(1))].split())
        neighbours.append((name, one.span(1), one.span(2), float(one[2].removesuffix(" km").replace(",", ""))))
    return neighbours


def longest_border(text: str) -> Span | None:
    """Find the neighbour with the longest border, of two or more."""
    neighbours = sorted(borders(text), key=lambda border: -border[3])
    if (
        len(neighbours) < 2
        or neighbours[0][3] == neighbours[1][3]
        or "  " in text[slice(*neighbours[0][1])]
        or "(" in neighbours[0][0]
    ):
        return None
    return neighbours[0][1]
