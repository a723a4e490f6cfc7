"""A server from its first connection to its last: the socket, the signals, the drain."""

import asyncio
import contextlib
import gc
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from orrery.errors import MachineError, RunError
from orrery.serving.app import create_app
from orrery.serving.errors import LOG
from orrery.serving.protocol import Connection
from orrery.serving.served import Served
from orrery.serving.settings import ServerSettings

FAREWELL = 2.0
"""Seconds in which connections are to end once nothing is written any more."""


class _Server(uvicorn.Server):
    """uvicorn's server, which ends as the engine ends and lets answers under way come to their end."""

    def __init__(self, config: uvicorn.Config, served: Served, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self.signalled: int | None = None
        self._served, self._ready = served, ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at a signal; uvicorn would send it again at the end, as if nothing had been done about it."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop; a second signal stops at once."""
        self.force_exit = self.signalled is not None
        self.signalled, self.should_exit = sig, True

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so."""
        await super().startup(sockets)
        self._served.loop_calls.open()
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        """Stop when the engine has failed."""
        stop = await super().on_tick(counter)
        if self._served.failed is not None:
            LOG.error("the engine failed", exc_info=self._served.failed)
            return True
        return stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, let the answers come to their end, and leave."""
        self._served.draining = True
        grace = 0.0 if self.force_exit else self._served.settings.grace
        closing = asyncio.get_running_loop().run_in_executor(None, self._served.close, grace)
        await super().shutdown(sockets)
        await asyncio.wait([asyncio.ensure_future(closing)], timeout=FAREWELL)


def listen(settings: ServerSettings) -> socket.socket:
    """Return a socket at the address of the settings, which takes no connection yet.

    Raises:
        MachineError: the address is taken, or none of this machine's.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        where = f"{settings.host}:{settings.port}"
        raise MachineError(
            f"cannot listen on {where}: {error.strerror}", "choose another with `port=N`, or `host=NAME`"
        ) from error
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the URL of a socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def server_of(served: Served, app: FastAPI, ready: Callable[[], None]) -> _Server:
    """Return the server of an application."""
    settings, safety = served.settings, served.settings.safety
    config = uvicorn.Config(
        app,
        http=partial(Connection, safety),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=safety.max_headers,
        timeout_keep_alive=int(safety.keep_alive) or 1,
        timeout_graceful_shutdown=int(settings.grace + FAREWELL) + 1,
    )
    return _Server(config, served, ready)


def run(served: Served, listener: socket.socket, say: Callable[[str], Any] = print) -> int:
    """Serve until a signal; return the exit code: 0 after SIGTERM, 130 after SIGINT.

    Args:
        served: the model; it is closed at the end.
        listener: from ``listen``.
        say: told the address once requests are taken.

    Raises:
        RunError: the engine has failed.
    """
    app = create_app(served, served.settings)
    server = server_of(served, app, lambda: say(f"serving {served.name} on {address_of(listener)}"))
    gc.collect()
    gc.freeze()  # a collection that visits torch's modules and the model would hold every answer up for 0.2 s
    asyncio.run(server.serve(sockets=[listener]))
    if served.failed is not None:
        raise RunError(f"the engine failed: {served.failed}", "what led to it is above; start the server again")
    if server.signalled == signal.SIGINT:
        print("stopped", file=sys.stderr)
        return 130
    return 0
