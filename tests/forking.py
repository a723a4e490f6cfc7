"""One command line of the program after another, each in a fork that is signalled or runs out of room."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from programs import DEVNULL, ORRERY, Program


@dataclass(frozen=True)
class Ended:
    """How a command ended: its code (below zero, the signal), what it said, and the seconds since it was signalled."""

    code: int
    out: str
    err: str
    seconds: float


def ended(
    words: Sequence[str],
    folder: Path,
    number: int | None = None,
    after: float = 0.0,
    until: Callable[[], bool] = lambda: True,
    room: int | None = None,
) -> Ended:
    """Run one command in ``folder``, with no file larger than ``room``.

    A signal is sent ``after`` seconds, counted from when the program has its handlers and ``until`` is true.
    """
    said = [folder.with_name(f"{folder.name}.said.{name}") for name in ("out", "err")]
    with said[0].open("wb") as out, said[1].open("wb") as err:
        process = Program([*ORRERY, *words], cwd=folder, stdin=DEVNULL, stdout=out, stderr=err, room=room)
    while not (catches(process.pid) and until()) and not is_over(process.pid):
        time.sleep(0.0005)
    time.sleep(after)
    asked = time.monotonic()
    if number is not None:
        os.kill(process.pid, number)  # it is not waited for before the next line: the number is still its own
    code = process.wait()
    return Ended(code, *(path.read_text(errors="replace") for path in said), time.monotonic() - asked)


def catches(process: int) -> bool:
    """Say whether a process has a handler for SIGTERM, which Python itself has not."""
    status = Path(f"/proc/{process}/status").read_text()
    caught = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")), "0")
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def is_over(process: int) -> bool:
    """Say whether a process has ended and is not waited for yet."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
