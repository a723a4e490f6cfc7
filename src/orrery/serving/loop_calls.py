"""From the engine's thread to the loop of events: many messages, one wake-up."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import final


@final
class LoopCalls:
    """Calls that one thread hands to the loop of events of another.

    Waking a loop costs more than a token's bookkeeping. So it is woken once for all that is handed over until it
    looks; a round of the engine wakes it once.
    """

    def __init__(self) -> None:
        self._calls: deque[Callable[[], None]] = deque()
        self._woken = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def open(self) -> None:
        """Deliver to the loop that runs now."""
        self._loop = asyncio.get_running_loop()

    def send(self, call: Callable[[], None]) -> None:
        """Have a call made by the loop; after the loop's end it is dropped."""
        self._calls.append(call)
        if not self._woken and self._loop is not None:
            self._woken = True
            try:
                self._loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:  # the loop is closed
                self._calls.clear()

    def _deliver(self) -> None:
        # Before the calls: what is handed over from now on wakes the loop again.
        self._woken = False
        while self._calls:
            self._calls.popleft()()
