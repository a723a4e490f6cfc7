"""The thread that owns an engine: requests come from any thread, and answers are told of on this one."""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import monotonic
from typing import final

from orrery.errors import OrreryError, RunError
from orrery.generation.engine import Engine
from orrery.generation.requests import Answering, Request

Ended = Callable[[Answering], None]


_LOG = "look at the log of the server"


class BusyError(OrreryError):
    """As many requests wait as may wait."""

    exit_code = RunError.exit_code


class ClosedError(OrreryError):
    """No more requests are taken."""

    exit_code = RunError.exit_code


@final
class Worker:
    """Runs an engine for as long as the program serves.

    Args:
        engine: what answers; from now on only this thread advances it.
        most_waiting: requests that may wait for a row; more are refused at once.

    Attributes:
        error: what ended the thread before it was closed; ``None`` while all is well.
        served: answers that have ended.
    """

    def __init__(self, engine: Engine, most_waiting: int = 64) -> None:
        self.error: BaseException | None = None
        self.served = 0
        self._engine, self._most = engine, engine.most_rows + most_waiting
        self._inbox: SimpleQueue[tuple[Answering, Ended] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._going = 0
        self._closed = False
        self._grace_ends, self._cut = float("inf"), False
        self._thread = threading.Thread(target=self._run, name="orrery-engine", daemon=True)
        self._thread.start()

    @property
    def going(self) -> int:
        """How many requests wait or are being answered."""
        return self._going

    def submit(self, request: Request, ended: Ended) -> Answering:
        """Hand a request to the engine; returns at once.

        Args:
            request: what to answer; its ``told`` is called on the engine's thread.
            ended: called there once the answer has ended, in whatever way.

        Raises:
            UsageError: the engine cannot answer it.
            BusyError: too many wait.
            ClosedError: the worker is closed, or its engine has failed.
        """
        answering = self._engine.prepare(request)
        with self._lock:
            if self._closed or self.error is not None:
                raise ClosedError("no more requests are taken", "ask again once the server runs again")
            if self._going >= self._most:
                raise BusyError(f"{self._going} requests are being answered or wait", "ask again in a moment")
            self._going += 1
            self._inbox.put((answering, ended))
        return answering

    def cancel(self, answering: Answering) -> None:
        """End an answer before its time; its row is free after the token that is being written."""
        self._engine.cancel(answering)

    def close(self, grace: float | int) -> bool:
        """Take no more requests and wait for those under way; what is left after ``grace`` seconds is cancelled.

        Returns:
            whether every answer came to its own end.
        """
        with self._lock:
            self._closed, self._grace_ends = True, monotonic() + grace
            self._inbox.put(None)
        self._thread.join()
        return self.error is None and not self._cut

    def _run(self) -> None:
        own: list[tuple[Answering, Ended]] = []
        left = False
        try:
            while self._take(own, wait=not left):
                if monotonic() > self._grace_ends:
                    self._cut = True
                    for answering, _ in own:
                        self._engine.cancel(answering)
                left = self._engine.advance()
                self._tell_ended(own)
        except BaseException as error:  # nobody else would learn that this thread has ended
            with self._lock:
                self.error = error
            self._give_up(own, error if isinstance(error, Exception) else RunError(f"the engine failed: {error}", _LOG))

    def _take(self, own: list[tuple[Answering, Ended]], *, wait: bool) -> bool:
        """Take what has come in, waiting for it where nothing else is to be done; return whether to go on."""
        while True:
            try:
                item = self._inbox.get(block=wait)
            except Empty:
                return True
            if item is None:
                if not own:
                    return False
                self._inbox.put(None)  # looked at again once those under way have ended
                return True
            own.append(item)
            self._engine.enter(item[0])
            wait = False

    def _tell_ended(self, own: list[tuple[Answering, Ended]]) -> None:
        """Tell of the answers that have ended; who listens no more harms nobody."""
        ended = [pair for pair in own if pair[0].done]
        own[:] = [pair for pair in own if not pair[0].done]
        with self._lock:
            self._going -= len(ended)
            self.served += len(ended)
        for answering, tell in ended:
            try:
                tell(answering)
            except Exception as error:
                answering.error = answering.error or error

    def _give_up(self, own: list[tuple[Answering, Ended]], error: Exception) -> None:
        """End all that is under way or waits: the engine has failed."""
        while not self._inbox.empty():
            item = self._inbox.get()
            if item is not None:
                own.append(item)
        for answering, _ in own:
            answering.error = answering.error or error
        self._tell_ended(own)
