"""A line that says what is being waited for, once it has taken two seconds."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Timer
from time import monotonic
from typing import Any

PATIENCE = 2.0
"""Seconds before the line appears."""

PAUSE = 10.0
"""Seconds between plain lines that differ in numbers alone: thousands of them in a file help nobody."""


class Waiting:
    """The line; `now` changes what it says."""

    def __init__(self, status: Any) -> None:
        self._status = status
        self._shown, self._told, self._at = False, "", 0.0
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

    def _plain(self) -> None:
        if self._text and not self._status.console.is_terminal:
            self._told, self._at = self._text, monotonic()
            self._status.console.print(self._text, markup=False)


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
    try:
        yield line
    finally:
        timer.cancel()
        timer.join()  # it may just be appearing
        status.stop()
