"""Forms that a process each holds, where processes cannot be forked: on Windows."""

import contextlib
import json
import secrets
import socket
import subprocess
import threading
from collections import OrderedDict
from typing import final

from orrery.errors import MachineError
from orrery.generation.form_process import ALONE
from orrery.generation.forms_apart import STARTING, HeldForm, command, environment, written
from orrery.generation.grammar import Form
from orrery.generation.guides import Begin
from orrery.generation.vocabulary import TokenVocabulary

KEPT = 4
"""Forms that are kept for the next answers: a process of its own takes half a second to start."""
_SECRET = 32


@final
class FormsAlone:
    """The forms over one vocabulary, each held by a process that reads the tokens again.

    It is reached through the loopback address, and known by a secret that it reads from its standard input. The kernel
    sets it no limit of time: who waits for it ends it.

    Args:
        vocabulary: the tokens.
        glance: as in `FormsApart`.
    """

    def __init__(self, vocabulary: TokenVocabulary, glance: float | None = None) -> None:
        self._vocabulary, self._glance = vocabulary, glance
        self._lock = threading.Lock()
        self._held: OrderedDict[str, HeldForm] = OrderedDict()

    def begin(self, form: Form) -> Begin:
        """Return what begins the guide of an answer; errors as in `FormsApart`."""
        text = form.lark(self._vocabulary.blank)
        with self._lock:
            held = self._held.pop(text, None)
        if held is None or held.gone is not None:
            held = self._start()
            held.begin(text.encode())
        with self._lock:
            self._held[text] = held
            while len(self._held) > KEPT:
                self._held.popitem(last=False)
        return held.copy

    def close(self) -> None:
        """Forget the forms; their processes end with their answers."""
        with self._lock:
            self._held.clear()

    def _start(self) -> HeldForm:
        """Return a process that has read the tokens."""
        self._vocabulary.require()
        secret = secrets.token_hex(_SECRET)
        with socket.create_server(("127.0.0.1", 0)) as server:
            given = {**written(self._vocabulary), "port": server.getsockname()[1], "secret": secret}
            process = subprocess.Popen(
                command(ALONE), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environment()
            )
            assert process.stdin is not None
            with contextlib.suppress(OSError), process.stdin as pipe:
                pipe.write(json.dumps(given).encode())
            server.settimeout(STARTING)
            with contextlib.suppress(TimeoutError, OSError):
                while process.poll() is None:
                    line, _ = server.accept()
                    line.settimeout(STARTING)
                    if secrets.compare_digest(_received(line, 2 * _SECRET), secret.encode()):
                        return HeldForm(line, self._vocabulary.size, self._glance, process)
                    line.close()  # another program of this machine
        process.kill()
        process.wait()
        raise MachineError("the process that holds a form does not start", "reinstall orrery and llguidance")


def _received(line: socket.socket, size: int) -> bytes:
    """Return the first bytes that come, or fewer where no more do."""
    received = b""
    while len(received) < size and (part := line.recv(size - len(received))):
        received += part
    return received
