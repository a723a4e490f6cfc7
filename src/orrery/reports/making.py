"""How a page was made: the command or the call, on which day, by which versions."""

import linecache
import os
import platform
import shlex
import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from types import FrameType

import orrery
from orrery.settings import overriding

COMMAND = "This command made the page:"
CALL = "This call from Python made the page:"
PACKAGES = ("orrery", "orrery_course")
_words: ContextVar[tuple[str, ...] | None] = ContextVar("words", default=None)


@dataclass(frozen=True)
class Making:
    """How a page was made.

    Attributes:
        lead: the sentence before the words.
        words: the command as a shell takes it, or the call as it stands in its file.
        day: on which it was made, such as 2026-11-26.
        versions: of what made it, by name.
    """

    lead: str
    words: str
    day: str
    versions: tuple[tuple[str, str], ...]


@contextmanager
def carrying_out(words: Sequence[str]) -> Iterator[None]:
    """Let pages that the block writes say that this command line of ``orrery`` made them."""
    before = _words.set(("orrery", *words))
    try:
        yield
    finally:
        _words.reset(before)


def made(command: str = "") -> Making:
    """Return how a page that is written now was made.

    Args:
        command: what made its numbers, where it was another command than the one that writes the page.
    """
    words = _words.get()
    if not command and words is not None:
        command = " ".join(
            [*(f"{name}={shlex.quote(value)}" for name, value in overriding(os.environ)), shlex.join(words)]
        )
    today = date.today().isoformat()
    if command:
        return Making(COMMAND, command, today, versions())
    return Making(CALL, called(), today, versions())


def versions() -> tuple[tuple[str, str], ...]:
    """Return the versions of the program, of torch and of Python."""
    found = [("Orrery", orrery.__version__)]
    with suppress(PackageNotFoundError):
        found.append(("torch", version("torch")))
    return (*found, ("Python", platform.python_version()))


def called() -> str:
    """Return the text of the call with which a program came into this package; its name where no file has the text."""
    inside: FrameType | None = None
    outside: FrameType | None = None
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__", "").partition(".")[0] in PACKAGES:
            inside, outside = frame, frame.f_back
        frame = frame.f_back
    text = "" if outside is None else _text(outside)
    if text or inside is None:
        return text
    return f"{inside.f_globals['__name__']}.{inside.f_code.co_qualname}(...)"


def _text(frame: FrameType) -> str:
    """Return the text of the call that a frame waits for."""
    place = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
    first, last, begin, end = place
    if first is None or last is None:
        return ""
    lines = [
        linecache.getline(frame.f_code.co_filename, number, frame.f_globals).encode()
        for number in range(first, last + 1)
    ]
    if not all(lines):
        return ""
    if begin is not None and end is not None:
        lines[-1] = lines[-1][:end]  # first, for both may be of one line
        lines[0] = lines[0][begin:]
    head, *rest = (line.decode(errors="replace").rstrip() for line in lines)
    return "\n".join([head.strip(), *textwrap.dedent("\n".join(rest)).splitlines()])
