"""HTTP by hand over one socket: bytes that no client library would send, and whether the connection survives them."""

import json
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPResponse
from typing import Any

BUFFER = 1 << 16


@dataclass(frozen=True)
class Reply:
    """What came back.

    Attributes:
        status: 0 where the connection ended without an answer.
        headers: their names in lower case.
        body: what was read of it.
        closes: whether the server said that it closes the connection.
        seconds: from the first byte sent to the last byte read.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    closes: bool = True
    seconds: float = 0.0

    @property
    def json(self) -> Any:
        """The body, or nothing where it is no JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def error(self) -> Mapping[str, Any]:
        """OpenAI's error object, empty where there is none."""
        fault = self.json.get("error") if isinstance(self.json, dict) else None
        return fault if isinstance(fault, dict) else {}


class _Buffer:
    """What has come over a connection: a response must not close it, the next one may be in it already."""

    def __init__(self, connection: socket.socket) -> None:
        self._file = connection.makefile("rb")

    def makefile(self, mode: str) -> "_Buffer":
        return self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def close(self) -> None:
        """Stay open."""

    def end(self) -> None:
        """Close it."""
        self._file.close()


class Wire:
    """One connection to a server on this machine."""

    def __init__(self, port: int, timeout: float = 30.0) -> None:
        self.port, self.timeout = port, timeout
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self._buffer = _Buffer(self.socket)

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *of: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._buffer.end()
        self.socket.close()

    def send(self, raw: bytes, method: str = "POST") -> Reply:
        """Send bytes as they are, and return the answer to them."""
        began = time.perf_counter()
        with suppress(OSError):  # a server that refuses early may have answered before it was told all
            self.socket.sendall(raw)
        return self.read(method, began)

    def read(self, method: str = "POST", began: float | None = None) -> Reply:
        """Return the next answer."""
        began = time.perf_counter() if began is None else began
        response = HTTPResponse(self._buffer, method=method)  # type: ignore[arg-type]
        try:
            response.begin()
            body = response.read()
        except (HTTPException, OSError):
            return Reply(0, seconds=time.perf_counter() - began)
        finally:
            response.close()
        headers = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, headers, body, response.will_close, time.perf_counter() - began)

    def ask(self, method: str, path: str, content: Any = None, **headers: str) -> Reply:
        """Send a well-formed request, JSON where there is a content."""
        return self.send(raw_request(method, path, self.port, content, headers), method)


def raw_request(
    method: str, path: str, port: int, content: Any = None, headers: Mapping[str, str | None] | None = None
) -> bytes:
    """Return the bytes of a request; a header that is ``None`` is left out, bytes are sent as they are."""
    body = b"" if content is None else content if isinstance(content, bytes) else json.dumps(content).encode()
    given = {"Host": f"127.0.0.1:{port}"}
    if content is not None:
        given |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
    for name, value in (headers or {}).items():
        given.pop(name, None)
        if value is not None:
            given[name] = value
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body
