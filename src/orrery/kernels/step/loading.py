"""The compiled step of this program: loaded once, in the background where there is time."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import torch

from orrery.kernels.compiled import set_threads

_lock = threading.Lock()
_loaded: Future[Any] | None = None


def begin_loading() -> "Future[Any]":
    """Load the machine code, or compile it, on a thread of its own; once a program."""
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = Future()
            threading.Thread(target=_load, args=(_loaded,), name="orrery-step", daemon=True).start()
        return _loaded


def _load(future: "Future[Any]") -> None:
    # The threads of this pool wait for each other some hundred times a token: asleep each time costs as much as the
    # whole token, awake for ever takes the processor from everybody else. It counts about a tenth of a millisecond.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    try:
        from orrery.kernels.step.build import build

        future.set_result(build())
    except BaseException as error:
        future.set_exception(error)


def compiled_run() -> Callable[..., None]:
    """Return the compiled step, with as many threads as torch has."""
    run: Callable[..., None] = begin_loading().result()
    set_threads(torch.get_num_threads())
    return run
