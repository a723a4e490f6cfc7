"""``orrery serve`` as a process of its own, on a port that it chooses itself."""

import os
import re
import select
import signal
import time
import urllib.request
from pathlib import Path
from types import TracebackType

from programs import DEVNULL, ORRERY, PIPE, Program

READY = re.compile(r"serving (.+) on http://127\.0\.0\.1:(\d+)")
PATIENCE = 90.0
"""Seconds in which a tiny model must be served on a busy machine."""


class ServerProcess:
    """A server that is ready once it is made; leaving its context kills what is left of it.

    Attributes:
        model: the name that it serves the model under.
        port: where.
        process: the process itself.
    """

    def __init__(self, *words: str | Path, log: Path | None = None) -> None:
        command = [*ORRERY, "serve", *words, "--port", "0"]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1"}
        self._log = None if log is None else log.open("wb")
        self.process = Program(command, stdout=PIPE, stderr=self._log or DEVNULL, env=environment)
        try:
            self.model, self.port = self._ready(time.monotonic() + PATIENCE)
        except BaseException:
            self.kill()
            raise

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    def memory(self) -> int:
        """Return the bytes that it holds in memory."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def get(self, path: str) -> bytes:
        """Return what a page says."""
        with urllib.request.urlopen(f"{self.url}{path}", timeout=30) as answer:
            return bytes(answer.read())

    def stop(self, seconds: float = 30.0) -> int:
        """Ask it to end, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()
        if self._log is not None:
            self._log.close()

    def __enter__(self) -> "ServerProcess":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    def _ready(self, until: float) -> tuple[str, int]:
        assert self.process.stdout is not None
        said = ""
        while time.monotonic() < until:
            if select.select([self.process.stdout], [], [], 0.5)[0]:
                piece = os.read(self.process.stdout.fileno(), 4096).decode()
                said += piece
                if match := READY.search(said):
                    return match[1], int(match[2])
                if not piece:
                    break
        raise AssertionError(f"no server after {PATIENCE:g} s, exit code {self.process.poll()}: {said!r}")


def metrics(text: str) -> dict[str, float]:
    """Return the values of a page in Prometheus' form, by name with labels."""
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, value in lines}
