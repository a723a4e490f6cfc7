"""The processes of a run watch each other: where one is lost the others end, whatever they wait for."""

import contextlib
import os
import secrets
import selectors
import socket
import threading
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from orrery.errors import MachineError

FAREWELL, LOST = b".", b"!"
GRACE = 2.0
"""Seconds in which a process may end by the error of its own message, before it is ended where it stands."""


@runtime_checkable
class TextStore(Protocol):
    """Where the processes tell each other where they are: torch's."""

    def set(self, key: str, value: str) -> None:
        """Keep a text."""
        ...

    def get(self, key: str) -> bytes:
        """Return a text as soon as it is there."""
        ...


class Watch:
    """Connections that the system closes when a process ends, however it ends.

    A message that waits in the transport for a process that is gone mostly fails at once, but one in some waits until
    its timeout, and no signal handler of Python runs meanwhile. The thread that reads here depends on neither.

    Args:
        lines: of the first process to all others, of another one to the first.
        end: called in a thread of its own once a process is lost, if ``leave`` or ``fail`` is not called in time.
    """

    def __init__(self, lines: Sequence[socket.socket], end: Callable[[], object]) -> None:
        self.lines, self.end = lines, end
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._follow, name="watch", daemon=True)
        self.thread.start()

    def leave(self) -> None:
        """Say that this process is done, so that its end is no loss."""
        self.over.set()
        self._tell(FAREWELL)

    def fail(self) -> None:
        """Say that this process ends by an error: the others have lost it."""
        self.over.set()
        self._tell(LOST)

    def _tell(self, word: bytes) -> None:
        for line in self.lines:
            with contextlib.suppress(OSError):  # it is gone already
                line.sendall(word)

    def _follow(self) -> None:
        with selectors.DefaultSelector() as living:
            for line in self.lines:
                living.register(line, selectors.EVENT_READ)
            while living.get_map():
                for key, _ in living.select():
                    living.unregister(key.fileobj)
                    if _said(key.fileobj) != FAREWELL:
                        self._tell(LOST)  # from the first process to those that do not see each other
                        if not self.over.wait(GRACE):
                            self.end()
                        return


def watch(store: TextStore, rank: int, world: int, seconds: float, end: Callable[[], object]) -> Watch:
    """Connect the first process with all others; each of them calls this.

    Args:
        store: of the run.
        rank: of this process.
        world: how many there are.
        seconds: that one waits for another.
        end: see `Watch`.

    Raises:
        MachineError: the first process cannot be reached, or another one does not come.
    """
    try:
        return Watch(_lines(store, rank, world, seconds), end)
    except OSError as error:
        message = (
            f"process {rank} of the run finds no way to {'another one' if rank == 0 else 'the first one'}: {error}"
        )
        raise MachineError(message, "let the machines of the run reach each other at all ports") from error


def _lines(store: TextStore, rank: int, world: int, seconds: float) -> list[socket.socket]:
    if rank:
        port, word = store.get("watch").decode().split()
        line = socket.create_connection((os.environ["MASTER_ADDR"], int(port)), timeout=seconds)
        line.sendall(word.encode())
        line.settimeout(None)
        return [line]
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    with socket.create_server(("", 0), family=family, dualstack_ipv6=both, backlog=world) as server:
        server.settimeout(seconds)
        word = secrets.token_hex(16)
        store.set("watch", f"{server.getsockname()[1]} {word}")
        lines: list[socket.socket] = []
        while len(lines) < world - 1:
            line, _ = server.accept()
            line.settimeout(seconds)
            if line.recv(len(word), socket.MSG_WAITALL) == word.encode():  # strangers are not of the run
                line.settimeout(None)
                lines.append(line)
        return lines


def _said(line: object) -> bytes:
    assert isinstance(line, socket.socket)
    try:
        return line.recv(1)
    except OSError:
        return b""
