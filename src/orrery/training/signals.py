"""SIGINT and SIGTERM: the first asks the loop to stop after its step, a second SIGINT stops at once."""

import signal
import threading
from types import FrameType
from typing import Any


class StopSignals:
    """Inside this context ``received`` holds the number of the signal that asked to stop, else None.

    Only the main thread can receive signals; elsewhere the context does nothing.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._receive)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and self.received is not None:
            raise KeyboardInterrupt
        self.received = number
