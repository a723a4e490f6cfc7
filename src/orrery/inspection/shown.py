"""A trace as a person reads it: what was read, what is kept under which names, and which checks pass."""

import re
from collections.abc import Sequence
from typing import Protocol

from orrery.inspection.checks import Check
from orrery.inspection.recorded import RecordedPass

LINES = 40
"""The most lines; names of which there are more are counted."""
_BLOCK = re.compile(r"\bblocks\.(\d+)\.")


class Shown(RecordedPass, Protocol):
    """A pass with what a person is told of it."""

    @property
    def checks(self) -> Sequence[Check]:
        """Return the checks."""
        ...

    @property
    def tokens(self) -> Sequence[str] | None:
        """Return the tokens as text."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """Return what a user may not expect."""
        ...


def shown(trace: Shown) -> str:
    """Return a trace in at most ``LINES`` lines; the same name in several blocks is one line, and nothing is read."""
    failed = [check.name for check in trace.checks if not check.passed]
    passed = len(trace.checks) - len(failed)
    read = " and ".join(f"{list(given.shape)}" for given in trace.inputs)
    head = [
        f"Trace of a {type(trace.model).__name__}: read {read}, gave logits {list(trace.logits.shape)}",
        f"  checks: {passed} of {len(trace.checks)} pass" + "".join(f"; failed: {name}" for name in failed[:3]),
    ]
    if trace.tokens:
        head.insert(1, f"  tokens: {' '.join(map(repr, trace.tokens[:20]))}{' ...' * (len(trace.tokens) > 20)}")
    head += [f"  note: {note}" for note in trace.notes[:3]]
    keys = _lines(trace)
    room = LINES - len(head) - 2
    more = [f"    and {len(keys) - room} more"] if len(keys) > room else []
    return "\n".join(line[:120] for line in (*head, f"  {len(trace.values)} values:", *keys[:room], *more))


def _lines(trace: Shown) -> list[str]:
    """Return a line for each name, with its blocks and the shape in the first of them, unless that lies on the disk."""
    blocks: dict[str, list[int]] = {}
    shapes: dict[str, str] = {}
    for key in trace.values:
        match = _BLOCK.search(key)
        name = _BLOCK.sub("blocks.*.", key, count=1)
        blocks.setdefault(name, []).extend([int(match[1])] if match else [])
        if name not in shapes:
            shapes[name] = f"  {list(trace.values[key].shape)}" if isinstance(trace.values, dict) else ""
    named = {name: name.replace("*", _ranges(numbers), 1) if numbers else name for name, numbers in blocks.items()}
    return [f"    {text}{shapes[name]}" for name, text in named.items()]


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers that rise, those beside each other as a range: ``0-3,6``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
