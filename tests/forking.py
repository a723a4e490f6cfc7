"""A warm process that forks one command line of the program after another, so that hundreds can be killed cheaply.

``python forking.py FOLDER`` imports what the verbs import, then reads requests from stdin, one JSON a line, forks, and
answers with the process's number and, when that has ended, with its code as ``subprocess`` has it.
"""

import atexit
import gc
import importlib
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

IMPORTS = (
    "orrery.cli.program orrery.cli.train.app orrery.training.loop orrery.training.assemble orrery.saving.final "
    "orrery.training.word_vectors orrery.kernels.word2vec orrery.language_model.load orrery.exporting.export "
    "orrery.saving.import_model orrery.parity.compare orrery.demo.tour orrery.compare.run orrery.labs.bottleneck "
    "orrery.laws.registry orrery.tasks.translation orrery.cli.chat sacrebleu gguf numba"
)
"""What the verbs import, slow to come."""


@dataclass(frozen=True)
class Ended:
    """How a command ended: its code (below zero, the signal), what it said, and the seconds since it was signalled."""

    code: int
    out: str
    err: str
    seconds: float


class Warm:
    """The warm process, and what the forked commands said."""

    def __init__(self) -> None:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen([sys.executable, __file__], text=True, env=environment, **pipes)
        assert self._answer() == "ready"

    def run(
        self,
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
        said = folder.with_name(f"{folder.name}.said")
        request = {"words": list(words), "folder": str(folder), "said": str(said), "room": room}
        assert self.process.stdin is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        child = int(self._answer())
        while not (catches(child) and until()) and not is_over(child):
            time.sleep(0.0005)
        time.sleep(after)
        asked = time.monotonic()
        if number is not None:
            os.kill(child, number)  # it is not waited for before the next line is read: the number is still its own
        print(file=self.process.stdin, flush=True)
        code = int(self._answer())
        seconds = time.monotonic() - asked
        return Ended(code, *(Path(f"{said}.{name}").read_text(errors="replace") for name in ("out", "err")), seconds)

    def close(self) -> None:
        """End the process."""
        self.process.communicate()

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def catches(process: int) -> bool:
    """Say whether a process has a handler for SIGTERM, which Python itself has not."""
    status = Path(f"/proc/{process}/status").read_text()
    caught = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")), "0")
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def is_over(process: int) -> bool:
    """Say whether a process has ended and is not waited for yet."""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def main() -> None:
    """Fork as asked until stdin ends."""
    for name in IMPORTS.split():
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page
    answers = os.fdopen(os.dup(1), "w")
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            become(request)
            return
        print(child, file=answers, flush=True)
        sys.stdin.readline()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers, flush=True)


def become(request: dict) -> None:
    """Be the program ``orrery`` with a command line, in this forked process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
    for handle, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{request['said']}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), handle)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if request["room"] is not None:
        sys.dont_write_bytecode = True  # else a module that is first imported now would be kept cut off
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["room"], request["room"]))
    os.chdir(request["folder"])
    random.seed()
    sys.argv = ["orrery", *request["words"]]
    from orrery.cli.start import main

    code = 1
    try:
        main()
    except SystemExit as stop:
        code = int(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    # What Python does while it ends costs seconds in a fork, which copies every page that it touches.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
