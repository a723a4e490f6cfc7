"""A process that has imported what the program imports, and forks one Python program after another.

``python warm_process.py HANDLE`` answers requests on a socket, each a JSON object: a program, its streams beside it, by
the number of the new process; "reap" by how a process has ended. `programs` asks.
"""

import atexit
import codecs
import contextlib
import gc
import importlib
import io
import json
import os
import pkgutil
import random
import resource
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

PACKAGES = (
    "cli recipes training language_model exchange tasks evaluation studies runs serving "
    "scores sandbox objectives metrics rewards families page kernels generation inspection data"
)
"""What the verbs import, slow to come: every module of these."""
ALSO = (
    "numpy sacrebleu gguf numba orrery.laws.registry cyclopts.config pydantic.dataclasses rich.status "
    "rich._emoji_codes torch._dynamo torch.utils._device torch.distributed.fsdp torch.distributed.tensor"
)
"""What they import later: a training torch._dynamo, for its optimizer."""
UNWANTED = ("transformers", "huggingface_hub", "datasets")
"""What reads the environment while it is imported, or patches what it finds."""
LONGEST = 1 << 20
USUAL = (sys.stdin.encoding, sys.stdin.errors)
"""How this machine's programs read and write."""


def load() -> None:
    """Import what the verbs import, so that the forks need not."""
    for name in ALSO.split():
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name in PACKAGES.split():
        root = importlib.import_module(f"orrery.{name}")
        for module in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    with contextlib.suppress(ImportError):
        from numba.core.registry import cpu_target

        cpu_target.typing_context.refresh()  # else with the first function that is compiled
        cpu_target.target_context.refresh()
    assert not (loaded := [name for name in UNWANTED if name in sys.modules]), loaded
    # A fork has one thread: what another one held would stay locked.
    assert len(os.listdir("/proc/self/task")) == 1, threading.enumerate()


def main() -> None:
    """Fork as asked until nobody asks any more."""
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        load()
        gc.collect()
        gc.freeze()  # a collection in a fork would copy every page
        asked.send(b"ready")
        while True:
            text, streams, _, _ = socket.recv_fds(asked, LONGEST, 3)
            if not text:
                return
            request = json.loads(text)
            if "reap" in request:
                asked.send(str(os.waitstatus_to_exitcode(os.waitpid(request["reap"], 0)[1])).encode())
                continue
            child = os.fork()
            if not child:
                asked.close()
                become(request, streams)
            for handle in streams:
                os.close(handle)
            asked.send(str(child).encode())


def become(request: Mapping[str, Any], streams: list[int]) -> NoReturn:
    """Be the program of a request, in this forked process, as if Python had been started for it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # what nohup ignores stays ignored
            signal.signal(number, signal.SIG_DFL)
    if request["session"]:
        os.setsid()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    open_streams(streams, request["closed"])
    bound(request["room"], request["space"])
    random.seed()
    sys.modules["numpy"].random.seed()
    sys.modules["torch"].default_generator.seed()
    code = outcome(program(request["words"]))
    with contextlib.suppress(AttributeError):
        threading._shutdown()  # type: ignore[attr-defined]
    # What else Python does while it ends costs seconds in a fork, which copies every page that it touches.
    atexit._run_exitfuncs()
    try:
        sys.stdout and sys.stdout.flush()
    except OSError as error:
        print(f"Exception ignored in: {sys.stdout!r}\n{type(error).__name__}: {error}", file=sys.stderr)
        code = 120
    os._exit(code)


def open_streams(given: list[int], closed: list[int]) -> None:
    """Put the streams in their places, those of them that are not closed, with what Python reads them by."""
    places = [place for place in range(3) if place not in closed]
    for handle, place in zip([os.dup(handle) for handle in given], places, strict=True):
        os.dup2(handle, place)
        os.close(handle)
    for handle in given:
        os.close(handle)
    asked, _, errors = os.environ.get("PYTHONIOENCODING", "").partition(":")
    encoding = codecs.lookup(asked).name if asked else USUAL[0]
    errors = errors or ("strict" if asked else USUAL[1])
    for place, name in enumerate(("stdin", "stdout", "stderr")):
        opened = None
        if place in closed:
            os.close(place)
        else:
            opened = stream(place, name, encoding, "backslashreplace" if place == 2 else errors)
        setattr(sys, name, opened)
        setattr(sys, f"__{name}__", opened)


def stream(place: int, name: str, encoding: str, errors: str) -> io.TextIOWrapper:
    """Return a standard stream as Python makes it."""
    unbuffered = bool(os.environ.get("PYTHONUNBUFFERED"))
    raw = io.FileIO(place, "w" if place else "r", closefd=False)
    raw.name = f"<{name}>"
    kinds = {True: io.BufferedWriter, False: io.BufferedReader}
    buffered: Any = raw if unbuffered and place else kinds[bool(place)](raw)
    lines = not unbuffered and (place == 2 or raw.isatty())
    text = io.TextIOWrapper(buffered, encoding, errors, newline="\n", line_buffering=lines, write_through=unbuffered)
    text.mode = "w" if place else "r"
    return text


def bound(room: int | None, space: int | None) -> None:
    """Allow no file larger than ``room``, and no more than ``space`` bytes of addresses beyond what is loaded."""
    if room is not None:
        sys.dont_write_bytecode = True  # else a module that is first imported now would be kept cut off
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    if space is not None:
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + space, used + space))


def program(words: list[str]) -> Callable[[], object]:
    """Return what Python would run for a command line: ``-m MODULE``, ``-c CODE`` or a file, and its words."""
    if words[0] == "-m":
        import runpy

        sys.path[0], sys.argv = os.getcwd(), ["-m", *words[2:]]
        return lambda: runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    is_code = words[0] == "-c"
    file = "<string>" if is_code else str(Path(words[0]).absolute())
    source: str | bytes = words[1] if is_code else Path(file).read_bytes()
    sys.argv = ["-c", *words[2:]] if is_code else list(words)
    sys.path[0] = "" if is_code else str(Path(file).resolve().parent)
    here = sys.modules["__main__"] = ModuleType("__main__")
    if not is_code:
        here.__file__ = file
    return lambda: exec(compile(source, file, "exec"), here.__dict__)


def outcome(run: Callable[[], object]) -> int:
    """Run a program and return its exit code; what it does not catch is told as Python tells it."""
    try:
        run()
    except SystemExit as stop:
        if stop.code is None or isinstance(stop.code, int):
            return (stop.code or 0) & 0xFF
        print(stop.code, file=sys.stderr)
        return 1
    except BaseException as error:
        traceback.print_exc()
        if isinstance(error, KeyboardInterrupt):
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
        return 1
    return 0


if __name__ == "__main__":
    main()
