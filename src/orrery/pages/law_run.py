"""The laws, checked beside a server that goes on answering: in another process, one run at a time."""

import multiprocessing
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, final

from orrery.errors import OrreryError, UsageError
from orrery.laws.registry import verify
from orrery.laws.workers import MOST, begin, cores

GRACE = 5.0
"""Seconds in which a process that is told to end has to end."""


@final
class LawRun:
    """One run of the laws, what it says, and what it found.

    Attributes:
        said: the check that is running; nothing while none is.
        failure: why the last run came to no end.
        report: what the last run that came to its end found, as ``orrery verify --json`` writes it.
        runs: how many came to their end.
        of: the family whose laws were checked; empty for all of them.
    """

    def __init__(self) -> None:
        self.said: str | None = None
        self.failure: str | None = None
        self.report: dict[str, Any] | None = None
        self.of, self.runs = "", 0
        self._lock = threading.Lock()
        self._process: Any = None

    def start(self, family: str | None) -> None:
        """Begin to check the laws of a family, or the default subset of all families.

        Raises:
            UsageError: a run is under way.
        """
        with self._lock:
            if self.said is not None:
                raise UsageError("the laws are being checked already", "wait for the end of this run, or stop it")
            context = multiprocessing.get_context("spawn")  # a copy of this process would inherit its locks
            ours, theirs = context.Pipe(duplex=False)
            self.said, self.failure = "", None
            self._process = context.Process(target=_check, args=(theirs, family), name="orrery-laws")
            self._process.start()
            theirs.close()
            threading.Thread(target=self._listen, args=(ours, family or ""), daemon=True).start()

    def stop(self) -> None:
        """End the run that is under way, if there is one."""
        with self._lock:
            if self._process is not None and self._process.is_alive():
                self.failure = "stopped"
                self._process.terminate()
                self._process.join(GRACE)

    def _listen(self, pipe: Connection, family: str) -> None:
        """Take up what the process says until it ends."""
        found: dict[str, Any] = {}
        with suppress(EOFError, OSError):
            while True:
                said = pipe.recv()
                if isinstance(said, str):
                    self.said = said
                else:
                    found = said
        self._process.join()
        if "report" in found:
            self.report, self.of, self.runs = found["report"], family, self.runs + 1
        else:
            self.failure = self.failure or found.get("failure", "the process that checked was killed")
        self.said = None


def _check(pipe: Connection, family: str | None) -> None:
    """Check in this process, and say so."""
    begin()
    try:
        report = verify(family, workers=min(MOST, cores()), say=pipe.send)
        pipe.send({"report": report.as_json()})
    except OrreryError as error:
        pipe.send({"failure": f"{error.message}: {error.hint}"})
