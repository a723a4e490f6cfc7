"""The three standard streams and the terminal's width, made fit for use before anything is read or written."""

import io
import os
import sys
from typing import Any, NoReturn

from orrery.errors import MachineError


class Closed(io.TextIOBase):
    """A stream that the caller closed: using it is an error, having it is none."""

    def __init__(self, name: str, hint: str) -> None:
        super().__init__()
        self._name, self._hint = name, hint

    @property
    def buffer(self) -> "Closed":
        """The same stream for bytes."""
        return self

    def isatty(self) -> bool:
        """Say that this is no terminal."""
        return False

    def _refuse(self, *of: Any) -> NoReturn:
        raise MachineError(f"standard {self._name} is closed", self._hint)

    write = read = readline = readlines = writelines = __next__ = _refuse


def prepare_streams() -> None:
    """Give closed streams a stand-in, and let no character fail that a terminal's encoding lacks."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Else the next file that is opened gets this number, and what C code prints lands in it.
            os.open(os.devnull, os.O_RDWR)
    if sys.stdin is None:
        sys.stdin = Closed("input", "give it, or close it with </dev/null")
    if sys.stdout is None:
        sys.stdout = Closed("output", "leave it open, or send it to /dev/null")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, it stays
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    # A terminal of no columns, as some programs say of a pipe: rich would draw into nothing.
    for name in ("COLUMNS", "LINES"):
        if name in os.environ and not os.environ[name].strip("0"):
            del os.environ[name]
