"""Signs of life where no terminal is: something is said whenever nothing was for a while."""

from collections.abc import Callable
from threading import Event, Thread
from time import monotonic

PAUSE = 10.0
"""Seconds of silence after which something is said."""


class Heartbeat:
    """Calls ``say`` from a thread of its own after ``pause`` seconds without ``beat``, until ``stop``.

    The thread is a daemon's: it keeps no process alive.
    """

    def __init__(self, say: Callable[[], None], pause: int | float = PAUSE) -> None:
        self._say, self._pause, self._stopped, self._last = say, pause, Event(), monotonic()
        self._thread = Thread(target=self._watch, daemon=True, name="heartbeat")
        self._thread.start()

    def beat(self) -> None:
        """Note that something was said."""
        self._last = monotonic()

    def stop(self) -> None:
        """Say nothing any more, and wait until nothing is being said."""
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(max(0.0, self._last + self._pause - monotonic())):
            if monotonic() - self._last >= self._pause:
                self._last = monotonic()
                self._say()


def duration(seconds: int | float) -> str:
    """Return a time in the largest unit of which there are two: ``90 s``, ``12 min``, ``3.5 h``, ``2.1 days``."""
    for size, name, form in ((86400.0, "days", ".1f"), (3600.0, "h", ".1f"), (60.0, "min", ".0f")):
        if seconds >= 2 * size:
            return f"{seconds / size:{form}} {name}"
    return f"{seconds:.0f} s"
