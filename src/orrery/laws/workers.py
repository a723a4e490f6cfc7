"""Jobs over several processes, which end with this one, however it ends."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from orrery.errors import MachineError

Answer = TypeVar("Answer")

MOST = 8
"""Processes that are started at most, where nothing is said: each holds torch, about 400 MB."""


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spread(jobs: Sequence[Callable[[], Answer]], workers: int, done: Callable[[int], None]) -> list[Answer]:
    """Return what each job gives, in their order; each runs in one of ``workers`` processes.

    Args:
        jobs: functions of modules, or partials of such, as they are sent to another process.
        workers: how many processes.
        done: called with the number of each job that is done.

    Raises:
        MachineError: a process was killed.
    """
    context = multiprocessing.get_context("spawn")  # a copy of this process would inherit its locks and threads
    with ProcessPoolExecutor(min(workers, len(jobs)), context, initializer=begin) as pool:
        try:
            waiting = {pool.submit(job): number for number, job in enumerate(jobs)}
            for future in as_completed(waiting):
                future.result()
                done(waiting[future])
            return [future.result() for future in waiting]
        except BrokenProcessPool as error:
            message = "a process that checked was killed, often for want of memory"
            raise MachineError(message, "take fewer: --workers 1") from error
        except BaseException:
            for child in multiprocessing.active_children():
                child.kill()
            raise


def begin() -> None:
    """Leave Ctrl-C to the process that waits, and end with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
