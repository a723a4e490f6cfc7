"""What is said of labels before training: how often each occurs, which are nearly equal, which are on one side."""

import re
from collections.abc import Iterable, Mapping

from orrery.data.stratified import folded

SHOWN = 20
"""Labels that are listed by name."""
MOST_COMPARED = 500
"""Labels up to which they are compared with each other: more are words, such as lemmas, and meant."""
SHORTEST = 5
"""Characters from which on labels that differ in one are flagged: shorter ones differ so by nature."""
_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]+)?")
_BETWEEN_WORDS = re.compile(r"[\W_]+")


def label_notes(train: Mapping[str, int], held_back: Mapping[str, int], what: str, renaming: str) -> list[str]:
    """Return what is said of labels.

    Args:
        train: how often each occurs in training.
        held_back: and among what is held back, if anything is.
        what: what has the labels, rows or words.
        renaming: how a label gets another name.
    """
    if not train:
        return []
    names = list(train)
    counts = (
        f"{name} {train[name]:,}" + (f"+{held_back.get(name, 0):,}" if held_back else "") for name in names[:SHOWN]
    )
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    sides = "trained on + held back" if held_back else "trained on"
    notes = [f"{len(names):,} label{'s' * (len(names) > 1)}, {what} {sides}: {', '.join(counts)}{more}"]
    if alone := [name for name in names if held_back and name not in held_back]:
        them = "them" if len(alone) > 1 else "it"
        notes.append(f"{listed(alone, train)} trained on and not held back: nothing is scored of {them}")
    pairs = near(names) if len(names) <= MOST_COMPARED else []
    for first, second in pairs[:SHOWN]:
        pair = f"{first!r} ({train[first]:,}) and {second!r} ({train[second]:,})"
        notes.append(f"warning: the labels {pair} are nearly equal, and learned as two; {renaming}")
    return notes + ([f"warning: {len(pairs) - SHOWN:,} more pairs of labels are"] if len(pairs) > SHOWN else [])


def near(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return pairs of labels that differ in capital letters, white space and punctuation, or in one letter alone.

    One digit more or less, or another word of one letter, is a difference that is meant.
    """
    groups: dict[str, list[str]] = {}
    known = list(dict.fromkeys(names))
    for name in known:
        for form in _forms(name):
            groups.setdefault(form, []).append(name)
    order = {name: place for place, name in enumerate(known)}
    pairs = {
        (first, second)
        for group in groups.values()
        for place, first in enumerate(group)
        for second in group[place + 1 :]
        if first != second and _are_near(first, second)
    }
    return sorted(pairs, key=lambda pair: (order[pair[0]], order[pair[1]]))


def listed(names: list[str], counts: Mapping[str, int]) -> str:
    """Return labels with their counts, and the verb that fits them."""
    names_and_counts = ", ".join(f"{name} {counts[name]:,}" for name in names[:SHOWN])
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return f"label{'s' * (len(names) > 1)} {names_and_counts}{more} {'are' if len(names) > 1 else 'is'}"


def _plain(name: str) -> str:
    return _BETWEEN_WORDS.sub("", folded(name))


def _forms(name: str) -> set[str]:
    """Return the plain name, and with each of its letters left out: names that differ in one letter share a form.

    Numbers of one value share theirs: 1 and 1.0.
    """
    plain = _plain(name)
    return {plain, _value(name)} | (
        {plain[:n] + plain[n + 1 :] for n in range(len(plain))} if len(plain) >= SHORTEST else set()
    )


def _value(name: str) -> str:
    """Return a number as it is written with decimals, or the name of what is none."""
    return str(float(name)) if _NUMBER.fullmatch(name) else name


def _are_near(first: str, second: str) -> bool:
    if _NUMBER.fullmatch(first) and _NUMBER.fullmatch(second):
        return float(first) == float(second)
    one, other = sorted((_plain(first), _plain(second)), key=len)
    if one == other or len(one) < SHORTEST:
        return one == other != ""
    start = next((n for n in range(len(one)) if one[n] != other[n]), len(one))
    longer = len(other) - len(one)
    if one[start + 1 - longer :] != other[start + 1 :] and sorted(one) != sorted(other):
        return False
    changed = {*one[start : start + 1 - longer], other[start]}
    words = [set(_BETWEEN_WORDS.split(folded(name))) for name in (first, second)]
    return not any(letter.isdigit() or letter in words[0] ^ words[1] for letter in changed)
