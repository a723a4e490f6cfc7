"""A server beside the program that started it: in a notebook, in a test, in a script that asks it itself."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from orrery.errors import MachineError
from orrery.exchange.reading.adapters import read_adapters
from orrery.language_model.model import LanguageModel
from orrery.serving.app import create_app
from orrery.serving.run import address_of, listen, server_of
from orrery.serving.served import Served
from orrery.serving.settings import ServerSettings

PATIENCE = 60.0
"""Seconds in which a server has to be ready, and those beyond its grace in which it has to end."""


@dataclass(frozen=True)
class RunningServer:
    """A server that runs.

    Attributes:
        url: where it is, ``http://127.0.0.1:PORT``.
        served: the model behind it.
        app: the application.
    """

    url: str
    served: Served
    app: FastAPI


@contextmanager
def serving(
    lm: LanguageModel, name: str | None = None, adapters: Mapping[str, str | Path] | None = None, **settings: Any
) -> Iterator[RunningServer]:
    """Serve a model from a thread of this process until the block ends.

    Args:
        lm: the model.
        name: what clients call it; by default that of its run or folder.
        adapters: folders of LoRAs over it, by the names that clients give.
        settings: those of ``ServerSettings``; the port is a free one where none is named.

    Raises:
        UsageError: settings that would let strangers in, or an adapter that has no rows.
        ModelFileError: an adapter that is damaged, or another model's.
        MachineError: the address is taken, or the server does not start or end.
    """
    own = ServerSettings.model_validate({"port": 0, **settings})
    own.check()
    served, ready = Served(lm, own, name, read_adapters(lm, adapters) if adapters else None), threading.Event()
    app = create_app(served, own)
    listener = listen(own)
    server = server_of(served, app, ready.set)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
    thread.start()
    if not ready.wait(PATIENCE):
        listener.close()
        raise MachineError("the server does not start", "look at the log of uvicorn.error")
    url = address_of(listener)
    try:
        yield RunningServer(url, served, app)
    finally:
        server.should_exit = True
        thread.join(own.grace + PATIENCE)
        if thread.is_alive():
            raise MachineError("the server does not end", "end the program")
