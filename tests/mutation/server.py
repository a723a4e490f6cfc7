"""A warm process that forks one run of pytest after another: what tests import from others is imported once.

``python server.py WARM LIBRARY...`` imports the libraries, and the program too where WARM says so, then reads requests
from stdin, one JSON a line, forks, and answers with the process's number and, when that has ended, with its code and
its processor seconds.
"""

import contextlib
import gc
import importlib
import json
import os
import random
import resource
import select
import signal
import subprocess
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

LIBRARIES = (
    "torch numpy pytest hypothesis pydantic tokenizers jinja2 cyclopts rich yaml safetensors.torch jaxtyping beartype "
    "starlette.testclient fastapi uvicorn numba transformers huggingface_hub sacrebleu gguf coverage"
)
"""What tests import from others, slow to come."""
_BETWEEN_LOOKS = 0.2
_LARGEST_FILE = 4 << 30
_LEAST_MEMORY = 6 << 30
_TESTS = Path(__file__).resolve().parents[1]
PATIENCE = 20.0


@dataclass(frozen=True)
class Ended:
    """How a run ended: its code, or None where it hung in a test, that test, and processor seconds."""

    code: int | None
    hung_in: str
    core_seconds: float


class Server:
    """One warm process in one checkout, and the requests to it; it keeps the files ``held`` open while it lives."""

    def __init__(
        self,
        checkout: Path,
        folder: Path,
        *,
        warm: bool = False,
        held: tuple[int, ...] = (),
        libraries: str = LIBRARIES,
    ) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TMPDIR": str(folder)}
        environment["PYTHONPATH"] = str(checkout / "src")
        # A broken module must leave nothing behind that a sound one would be read from.
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        words = [sys.executable, __file__, "program" if warm else "", *libraries.split()]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(words, text=True, cwd=checkout, env=environment, pass_fds=held, **pipes)
        assert self._answer() == "ready"

    def run(self, request: dict, seconds: dict[str, float], start: float, unknown: float = 10.0) -> Ended:
        """Run pytest once; end it where one test, or what comes before the first, takes far longer than it should."""
        said = Path(request["said"])
        said.unlink(missing_ok=True)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        child = int(self._answer())
        hung_in, current, since, limit = "", "", time.monotonic(), start
        while not select.select([self.process.stdout], [], [], _BETWEEN_LOOKS)[0]:
            running = _last_begun(said)
            if running != current:
                current, since, limit = running, time.monotonic(), patience(seconds.get(running, unknown))
            if time.monotonic() - since > limit and not hung_in:
                hung_in = current or "before the first test"
                _end(child)
        code, used = self._answer().split()
        _end(child)  # what tests began and did not end
        return Ended(None if hung_in else int(code), hung_in, float(used))

    def close(self) -> None:
        """End the process, and a fork that still runs."""
        self.process.terminate()
        self.process.communicate()

    def _answer(self) -> str:
        assert self.process.stdout is not None
        if not (line := self.process.stdout.readline()):
            raise RuntimeError(f"the warm process ended with {self.process.wait()}: start again, it goes on from here")
        return line.strip()


def patience(seconds: float) -> float:
    """Return the seconds after which a test hangs: a mutation, or a busy machine, may slow it down."""
    return PATIENCE + 8 * seconds


def _last_begun(said: Path) -> str:
    """Return the test that the last complete line speaks of, where that line says that it began."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        line = said.read_text(encoding="utf-8").split("\n")[-2]
        word, *rest = json.loads(line)
        return rest[0] if word == "begun" else f"after {rest[0]}"
    return ""


def _end(child: int) -> None:
    """Kill a process, its group, and whatever its children put into other groups."""
    for process in reversed([child, *_below(child)]):
        for kill in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                kill(process, signal.SIGKILL)


def _below(process: int) -> list[int]:
    """Return the processes that one has begun, and those that they have, as far as the system tells."""
    children = []
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                children += [int(child), *_below(int(child))]
    return children


def main() -> None:
    """Fork as asked until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tool is interrupted; it ends its processes itself
    signal.signal(signal.SIGTERM, lambda *_: _leave(running))
    running: list[int] = []
    sys.path.pop(0)  # the folder of this file: what stands in it has names that tests may mean otherwise
    warm, *libraries = sys.argv[1:]
    for name in libraries:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if warm:
        _import_program()
    elif "orrery" in sys.modules:  # then no change of it would be seen
        raise SystemExit("error: a library has imported the program")
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page
    answers, parent = os.fdopen(os.dup(1), "w"), os.getppid()
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(request)
        running[:] = [child]
        print(child, file=answers, flush=True)
        status, used = _waited(child, parent)
        running.clear()
        print(os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, file=answers, flush=True)


def _waited(child: int, parent: int) -> tuple[int, resource.struct_rusage]:
    """Wait for a fork; where the tool itself has been killed, kill the fork and end."""
    while True:
        process, status, used = os.wait4(child, os.WNOHANG)
        if process:
            return status, used
        if os.getppid() != parent:
            _leave([child])
        time.sleep(0.01)


def _leave(running: list[int]) -> None:
    """End this process and a fork that runs."""
    for child in running:
        _end(child)
    os._exit(0)


def _import_program() -> None:
    """Import every module of the program, so that no test is charged for it."""
    source = Path("src").resolve()
    for path in sorted(source.glob("orrery*/**/*.py")):
        name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
        if not name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def _become(request: dict) -> None:
    """Be one run of pytest, in this forked process, and end."""
    code = 3
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for handle, place in ((0, os.devnull), (1, request["log"]), (2, request["log"])):
            os.dup2(os.open(place, os.O_RDWR | os.O_CREAT | os.O_APPEND), handle)
        _limit()
        os.environ.update(request["environment"])
        sys.path[:0] = [os.getcwd(), str(Path("src").resolve()), str(Path("tests").resolve()), str(_TESTS)]
        random.seed()
        import pytest

        from mutation.reporting import plugins

        sys.argv = ["pytest", *request["words"]]
        code = int(pytest.main(request["words"], plugins=plugins(request)))
    except BaseException:
        traceback.print_exc()
    # What Python does while it ends costs seconds in a fork, which copies every page that it touches.
    sys.stdout.flush()
    os._exit(code)


def _limit() -> None:
    """Let a broken program end with an error of its own where it would fill the memory or the disk."""
    most = max(_LEAST_MEMORY, os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2)
    for kind, size in ((resource.RLIMIT_DATA, most), (resource.RLIMIT_FSIZE, _LARGEST_FILE)):
        resource.setrlimit(kind, (size, resource.getrlimit(kind)[1]))


if __name__ == "__main__":
    main()
