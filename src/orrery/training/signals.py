"""SIGINT, SIGTERM and SIGHUP: the first asks the loop to stop after its step, a second SIGINT stops at once."""

import os
import signal
import threading
from types import FrameType
from typing import Any

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def pass_on(number: int | None) -> None:
    """Raise what a signal that stopped a training means to something larger, of which it is a part."""
    if number is not None:
        raise KeyboardInterrupt if number == signal.SIGINT else SystemExit(128 + number)


class StopSignals:
    """Inside this context ``received`` holds the number of the signal that asked to stop, else None.

    Only the main thread can receive signals; elsewhere the context does nothing. What the process was started to
    ignore, as ``nohup`` does with SIGHUP, stays ignored.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}
        self._terminals: list[int] = []

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            self._terminals = [handle for handle in (1, 2) if os.isatty(handle)]
            for number in NUMBERS:
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self._leave_terminal()
        if number == signal.SIGINT and self.received is not None:
            raise KeyboardInterrupt
        self.received = number

    def _leave_terminal(self) -> None:
        """Say the rest to nobody: writing to a terminal that is gone fails, and the run has still to be saved."""
        if self._terminals:
            nobody = os.open(os.devnull, os.O_WRONLY)
            for handle in self._terminals:
                os.dup2(nobody, handle)
            os.close(nobody)
            self._terminals = []
