"""A program in a process of its own, as when it is started alone, that takes the steps it is asked for."""

import multiprocessing
import sys
import time
from collections.abc import Callable
from typing import Any

import torch


class Apart:
    """What one program asks of the C library for its memory, or compiles, is nobody else's.

    Args:
        make: builds what takes a step, in the new process.
    """

    def __init__(self, make: Callable[[], Callable[..., Any]]) -> None:
        processes = multiprocessing.get_context("spawn")
        self.asked, other = processes.Pipe()
        self.process = processes.Process(target=take_steps, args=(make, other, torch.get_num_threads()), daemon=True)

    def __enter__(self) -> "Apart":
        self.process.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.process.terminate()
        self.process.join()

    def step(self, *given: Any) -> tuple[Any, float]:
        """Have it take a step; return what that returns, and its seconds."""
        self.asked.send(given)
        while not self.asked.poll(1):
            if not self.process.is_alive():
                sys.exit("a program ended before its step")
        return self.asked.recv()


def take_steps(make: Callable[[], Callable[..., Any]], asked: Any, threads: int) -> None:
    """Take the steps that are asked for, each timed here."""
    torch.set_num_threads(threads)
    step = make()
    while True:
        given = asked.recv()
        start = time.perf_counter()
        told = step(*given)
        asked.send((told, time.perf_counter() - start))
