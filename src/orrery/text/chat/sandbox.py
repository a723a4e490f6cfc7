"""Render a template of unknown origin: in a sandbox, in a process of its own, with limits on size, time and output."""

import atexit
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from orrery.errors import DataError, MachineError, ModelFileError

SIZE = 64 << 10
SECONDS = 2.0
PATIENCE = 15.0
"""How many times as long the clock may run: on a busy machine a process waits for most of it."""
OUTPUT = 1 << 20

_HINT = "the template may be broken or hostile; pass another one, or use one of Orrery's formats"


def render(template: str, calls: Sequence[Mapping[str, Any]], seconds: float = SECONDS) -> list[str]:
    """Return the template's text for each set of variables.

    Jinja's sandbox stops attribute access but neither huge strings nor nested loops, so a worker process is ended
    after ``seconds`` of its computing for all calls together, or `PATIENCE` times as many of the clock. An output holds
    at most 1 Mi characters and four times the variables.
    Raises `ModelFileError` for a template that breaks a limit or fails.
    """
    return [_text(answer) for answer in _answers(template, calls, seconds)]


def attempt(template: str, calls: Sequence[Mapping[str, Any]], seconds: float = SECONDS) -> list[str | None]:
    """Return what `render` returns, with None for each set of variables that the template refuses."""
    return [answer.get("text") for answer in _answers(template, calls, seconds)]


def _text(answer: Mapping[str, str]) -> str:
    if "text" not in answer:
        raise ModelFileError(str(answer.get("error")), _HINT)
    return answer["text"]


def _answers(template: str, calls: Sequence[Mapping[str, Any]], seconds: float) -> list[dict[str, str]]:
    if len(template.encode()) > SIZE:
        raise ModelFileError(f"the chat template is larger than {SIZE >> 10} KiB", _HINT)
    try:
        variables = json.dumps(list(calls), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"the conversation is not plain JSON: {error}", "use text, numbers, lists and objects"
        ) from None
    limit = OUTPUT + 4 * len(variables)
    request = f'{{"template": {json.dumps(template)}, "limit": {limit}, "seconds": {seconds}, "calls": {variables}}}\n'
    answer = _worker().ask(request, seconds)
    return list(answer.get("answers") or [answer] * len(calls))


class RenderingWorker:
    """One process that renders; it is started when first asked and again after it was killed."""

    START_SECONDS = 60.0

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def ask(self, request: str, seconds: float) -> dict[str, Any]:
        """Return the answer to one line; a worker that is late or dies is an answer with an ``error``."""
        with self._lock:
            process = self._process or self._start()
            line = self._exchange(process, request, PATIENCE * seconds)
            if not line:
                self.stop()
                return {"error": f"the chat template was stopped: it took over {seconds:g} s or ended its process"}
            return dict(json.loads(line))

    def stop(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    _close(stream)

    def _start(self) -> subprocess.Popen[str]:
        file = Path(__file__).with_name("sandbox_worker.py")
        # -P: the worker's folder holds modules of ours that must not hide others. The environment is ours to give:
        # a template that broke out of the sandbox finds no keys in it.
        environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PYTHONIOENCODING": "utf-8"}
        environment |= {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TZ") if name in os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(file)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=environment, text=True, encoding="utf-8",
        )  # fmt: skip
        if not self._exchange(self._process, "", self.START_SECONDS):
            self.stop()
            raise MachineError("the process that renders chat templates does not start", "reinstall orrery and jinja2")
        return self._process

    @staticmethod
    def _exchange(process: subprocess.Popen[str], request: str, seconds: float) -> str:
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        try:
            process.stdin.write(request)
            process.stdin.flush()
            return process.stdout.readline()
        except OSError:
            return ""
        finally:
            timer.cancel()


def _close(stream: Any) -> None:
    try:
        stream.close()
    except OSError:
        return  # what was still to be written has no reader any more


@cache
def _worker_of(process: int) -> RenderingWorker:
    worker = RenderingWorker()
    atexit.register(worker.stop)
    return worker


def _worker() -> RenderingWorker:
    # By process: a forked child must not write into its parent's pipe.
    return _worker_of(os.getpid())
