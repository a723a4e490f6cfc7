"""A line that says what is being waited for, once it has taken two seconds."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from time import monotonic
from typing import Any

from orrery.reports.heartbeat import PAUSE, Heartbeat, duration

PATIENCE = 2.0
"""Seconds before the line appears."""


class Waiting:
    """The line; `now` changes what it says."""

    def __init__(self, status: Any) -> None:
        self._status = status
        self._shown, self._told, self._at, self._begun = False, "", 0.0, monotonic()
        self._text = ""
        self._turn = Lock()

    def now(self, text: str) -> None:
        """Say what is being done from here on: on a terminal in place, elsewhere as a plain line, a count seldom."""
        from rich.markup import escape

        with self._turn:
            self._text = text
            self._status.update(escape(text))
            if self._shown and (_words(text) != _words(self._told) or monotonic() - self._at > PAUSE):
                self._plain()

    def appear(self) -> None:
        """Show the line from now on."""
        with self._turn:
            self._shown = True
            if self._status.console.is_terminal:
                self._status.start()
            else:
                self._plain()

    def still_there(self) -> None:
        """Say once more what is waited for, and for how long, where no terminal shows it and nothing else did."""
        with self._turn:
            if self._shown and monotonic() - self._at >= PAUSE:
                self._plain(f", for {duration(monotonic() - self._begun)}")

    def _plain(self, more: str = "") -> None:
        if self._text and not self._status.console.is_terminal:
            self._told, self._at = self._text, monotonic()
            self._status.console.print(f"{self._text}{more}", markup=False)


def _words(text: str) -> str:
    """Return a text without its numbers."""
    return re.sub(r"[\d.,]+", "", text)


@contextmanager
def waiting() -> Iterator[Waiting]:
    """Yield a line on stderr that appears after two seconds and goes when the work ends."""
    from rich.console import Console

    status = Console(stderr=True).status("")
    line = Waiting(status)
    timer = Timer(PATIENCE, line.appear)
    timer.daemon = True
    timer.start()
    heartbeat = Heartbeat(line.still_there, PAUSE)
    try:
        yield line
    finally:
        timer.cancel()
        timer.join()  # it may just be appearing
        heartbeat.stop()
        status.stop()
