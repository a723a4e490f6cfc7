"""Many clients at once, clients that leave, and somebody who asks all the while whether the server is well."""

import json
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from http_wire import Wire, raw_request


@dataclass(frozen=True)
class Outcome:
    """What a client got.

    Attributes:
        status: of the response, 0 where there was none.
        text: of the answer.
        seconds: until it was whole.
        retry_after: whether a refusal said when to come again.
        total: tokens of the answer.
    """

    status: int
    text: str | None
    seconds: float
    retry_after: bool = False
    total: int = 0


def ask(port: int, body: Any, path: str = "/v1/completions", timeout: float = 120) -> Outcome:
    """Send one request over a connection of its own."""
    with Wire(port, timeout) as wire:
        return outcome(wire, body, path)


def outcome(wire: Wire, body: Any, path: str = "/v1/completions") -> Outcome:
    """Send one request over a connection."""
    reply = wire.ask("POST", path, body)
    if reply.status != 200:
        return Outcome(reply.status, None, reply.seconds, "retry-after" in reply.headers)
    return Outcome(200, reply.json["choices"][0]["text"], reply.seconds, total=reply.json["usage"]["completion_tokens"])


def all_at_once(port: int, bodies: Sequence[Any], timeout: float = 120) -> list[Outcome]:
    """Send every request from a thread of its own, connections open, all in the same moment."""
    barrier, outcomes = threading.Barrier(len(bodies)), dict[int, Outcome]()

    def one(number: int) -> None:
        with Wire(port, timeout) as wire:
            barrier.wait(timeout)
            outcomes[number] = outcome(wire, bodies[number])

    threads = [threading.Thread(target=one, args=(number,)) for number in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [outcomes[number] for number in range(len(bodies))]


class Watch:
    """Asks /health every few milliseconds, over one connection.

    Attributes:
        seconds: what each answer took.
        statuses: those that came.
    """

    def __init__(self, port: int, every: float = 0.01) -> None:
        self.seconds: list[float] = []
        self.statuses: set[int] = set()
        self._port, self._every, self._ended = port, every, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        with Wire(self._port) as wire:
            while not self._ended.wait(self._every):
                reply = wire.ask("GET", "/health")
                self.seconds.append(reply.seconds)
                self.statuses.add(reply.status)


class Stream:
    """A streamed answer that is read event by event."""

    def __init__(self, port: int, body: Any, path: str = "/v1/completions", timeout: float = 60) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.socket.sendall(raw_request("POST", path, port, {**body, "stream": True}))
        self._lines = self.socket.makefile("rb")

    def events(self) -> Iterator[Any]:
        """Yield the events as they come: objects, and at the end the text ``[DONE]`` or an error."""
        for line in self._lines:
            if line.startswith(b"data: "):
                said = line[6:].strip().decode()
                yield said if said == "[DONE]" else json.loads(said)
                if said == "[DONE]" or said.startswith('{"error"'):
                    return

    def texts(self, count: int) -> list[str]:
        """Return the texts of the next events that have one."""
        spelled: list[str] = []
        for event in self.events():
            if isinstance(event, dict) and event.get("choices"):
                spelled.append(event["choices"][0]["text"])
            if len(spelled) == count:
                break
        return spelled

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.leave()

    def leave(self) -> None:
        """Close the connection, whatever is under way."""
        self._lines.close()
        self.socket.close()


def until(holds: Any, seconds: float = 30, every: float = 0.01) -> bool:
    """Return whether something becomes true within so many seconds; it is asked every so many."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(every)
    return False


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of them lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
