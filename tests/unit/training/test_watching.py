"""Processes that watch each other: the loss of one ends all others in time, and a farewell ends nobody."""

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from orrery.errors import MachineError
from orrery.training import watching
from orrery.training.watching import Watch, watch

WAITS = """
import os, sys, time
from orrery.training.watching import watch

class Told:
    def set(self, key, value):
        print(value, flush=True)

    def get(self, key):
        return sys.stdin.readline().encode()

os.environ["MASTER_ADDR"] = "localhost"
watch(Told(), int(sys.argv[1]), 2, 10.0, lambda: os._exit(5))
print("joined", flush=True)
time.sleep(60)
"""
Ends = list[threading.Event]
Join = Callable[[Ends], list[Watch]]


class Shared:
    """A store of processes that are threads here."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.there = threading.Condition()

    def set(self, key: str, value: str) -> None:
        with self.there:
            self.texts[key] = value
            self.there.notify_all()

    def get(self, key: str) -> bytes:
        with self.there:
            self.there.wait_for(lambda: key in self.texts, timeout=10)
            return self.texts[key].encode()


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Ends], list[Watch]]]:
    """Return what connects as many processes as there are ways to end, each a thread here."""
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    monkeypatch.setattr(watching, "GRACE", 0.05)
    made: list[Watch] = []

    def join(ends: Ends) -> list[Watch]:
        store, world = Shared(), len(ends)
        with ThreadPoolExecutor(world) as pool:
            made.extend(pool.map(lambda rank: watch(store, rank, world, 10.0, ends[rank].set), range(world)))
        return made

    yield join
    for each in made:
        each.leave()
        for line in each.lines:
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
    for each in made:
        each.thread.join(5)
        for line in each.lines:
            line.close()


@pytest.mark.parametrize("lost", [0, 2])
def test_the_end_of_one_connection_ends_all_others(lost: int, joined: Join) -> None:
    ended = [threading.Event() for _ in range(3)]
    watches = joined(ended)
    watches[lost].over.set()  # what is gone ends nothing
    for line in watches[lost].lines:
        line.shutdown(socket.SHUT_RDWR)
    assert [each.wait(5) for number, each in enumerate(ended) if number != lost] == [True, True]
    assert not ended[lost].is_set()


def test_an_error_in_one_process_is_a_loss_to_the_others(joined: Join) -> None:
    ended = [threading.Event() for _ in range(3)]
    watches = joined(ended)
    watches[1].fail()
    assert ended[0].wait(5)
    assert ended[2].wait(5)
    assert not ended[1].wait(0.2)


def test_a_farewell_and_an_end_of_its_own_end_nobody(joined: Join) -> None:
    ended = [threading.Event() for _ in range(3)]
    watches = joined(ended)
    watches[1].leave()
    watches[1].lines[0].shutdown(socket.SHUT_RDWR)
    assert not any(each.wait(0.2) for each in ended)
    watches[0].over.set()  # it raises the error of its own message
    watches[2].lines[0].shutdown(socket.SHUT_RDWR)
    assert not ended[0].wait(0.3)


def test_a_process_ends_that_waits_where_no_signal_reaches() -> None:
    first, second = (
        subprocess.Popen([sys.executable, "-c", WAITS, rank], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for rank in "01"
    )
    where = first.stdout.readline()
    second.stdin.write(where)
    second.stdin.flush()
    assert [each.stdout.readline() for each in (first, second)] == ["joined\n"] * 2
    began = time.monotonic()
    second.kill()
    assert first.wait(10) == 5
    assert time.monotonic() - began < 5
    for each in (first, second):
        each.communicate()


def test_a_process_that_does_not_come_and_one_that_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MachineError, match="finds no way to another one"):
        watch(Shared(), 0, 2, 0.05, print)
    monkeypatch.setenv("MASTER_ADDR", "localhost")
    store = Shared()
    store.set("watch", "1 nobody")
    with pytest.raises(MachineError, match="finds no way to the first one"):
        watch(store, 1, 2, 0.5, print)
