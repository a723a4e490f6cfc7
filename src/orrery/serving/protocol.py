"""A connection that cannot be used to hold the server up: silent, slow and half-open ones are ended."""

import asyncio
import json
import socket
from typing import Any, final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from orrery.serving.errors import ApiError
from orrery.serving.settings import Safety

SEND_BUFFER = 256 << 10
"""Bytes that the system may hold for a reader: unbounded, it takes megabytes before anybody learns of a slow one."""


@final
class Connection(H11Protocol):
    """uvicorn's connection with timeouts.

    Args:
        safety: what a connection may take.
        given: what uvicorn gives every connection.
    """

    def __init__(self, safety: Safety, **given: Any) -> None:
        super().__init__(**given)
        self._safety = safety
        self._reading: asyncio.TimerHandle | None = None
        self._writing: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Take a connection, or end it where too many are open."""
        super().connection_made(transport)
        if len(self.connections) > self._safety.connections:
            transport.abort()
            return
        if (own := transport.get_extra_info("socket")) is not None and own.family != socket.AF_UNIX:
            own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        for timer in (self._reading, self._writing):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take what has come; a request that has begun has to come whole."""
        if self._reading is None and not self._is_answering():
            self._expect_request()
        super().data_received(data)
        if self._is_answering() and self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def on_response_complete(self) -> None:
        """Wait for the next request, and for the rest of a body that nobody reads."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and self._reading is None:
            self._expect_request()

    def pause_writing(self) -> None:
        """Give a slow reader some time."""
        super().pause_writing()
        self._writing = self.loop.call_later(self._safety.write_timeout, self.transport.abort)

    def resume_writing(self) -> None:
        """Let it go on."""
        super().resume_writing()
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

    def send_400_response(self, msg: str) -> None:
        """Tell of bytes that are no request, as every other failure is told."""
        body = json.dumps(ApiError(400, msg, code="invalid_http").body).encode()
        kind, size = (b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            for event in (
                h11.Response(status_code=400, headers=[kind, size, (b"connection", b"close")], reason=b"Bad Request"),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
        if self._is_answering():  # a body that is broken off: nobody waits for what is made of its beginning
            self.cycle.disconnected = True
            self.cycle.message_event.set()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _expect_request(self) -> None:
        self._reading = self.loop.call_later(self._safety.read_timeout, self._give_up)

    def _give_up(self) -> None:
        self._reading = None
        is_idle = self.cycle is not None and self.conn.their_state is h11.IDLE and not self.conn.trailing_data[0]
        if not is_idle and not self._is_answering():
            self.transport.abort()
