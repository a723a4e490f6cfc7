"""The laws, checked beside a server that goes on answering: in another process, one run at a time."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from typing import Any, final

from orrery.errors import OrreryError, UsageError
from orrery.laws.registry import verify
from orrery.laws.workers import MOST, cores

GRACE = 5.0
"""Seconds in which a process that is told to end has to end."""
# A program of its own: a fork would inherit locks, and a spawned process would import the user's script again.
_CHECK = [sys.executable, "-c", "from orrery.page.law_run import check; check()"]


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
        self._process: subprocess.Popen[str] | None = None

    def start(self, family: str | None) -> None:
        """Begin to check the laws of a family, or the default subset of all families.

        Raises:
            UsageError: a run is under way.
        """
        with self._lock:
            if self.said is not None:
                raise UsageError("the laws are being checked already", "wait for the end of this run, or stop it")
            self.said, self.failure = "", None
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            path = os.pathsep.join(filter(None, sys.path))
            command = [*_CHECK, *([] if family is None else [family])]
            self._process = subprocess.Popen(command, env={**os.environ, "PYTHONPATH": path}, **pipes)
            threading.Thread(target=self._listen, args=(self._process, family or ""), daemon=True).start()

    def stop(self) -> None:
        """End the run that is under way, if there is one."""
        with self._lock:
            if self._process is not None and self._process.poll() is None:
                self.failure = "stopped"
                self._process.terminate()  # it ends its own processes, and frees what they share
                try:
                    self._process.wait(GRACE)
                except subprocess.TimeoutExpired:
                    self._process.kill()

    def _listen(self, process: "subprocess.Popen[str]", family: str) -> None:
        """Take up what the process says until it ends."""
        state: dict[str, Any] = {}
        with process:
            for line in process.stdout or ():
                said = json.loads(line)
                self.said = said.get("said", self.said)
                state |= said
        if "report" in state:
            self.report, self.of, self.runs = state["report"], family, self.runs + 1
        else:
            self.failure = self.failure or state.get("failure", "the process that checked was killed")
        self.said = None


def check(words: Iterable[str] | None = None) -> None:
    """Check in this process the laws of the family that is named, or of all; a line of JSON tells each step.

    The process ends where its standard input does, and so with whoever has started it.
    """
    family = next(iter(sys.argv[1:] if words is None else words), None)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        _tell(report=verify(family, workers=min(MOST, cores()), say=lambda said: _tell(said=said)).as_json())
    except OrreryError as error:
        _tell(failure=f"{error.message}: {error.hint}")


def _tell(**said: Any) -> None:
    print(json.dumps(said), flush=True)


def _end_with_input() -> None:
    os.read(0, 1)  # the buffer of sys.stdin would be locked when the process ends
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)
