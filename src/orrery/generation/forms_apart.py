"""Answers of a form that other processes hold: one that is made to be slow keeps nobody waiting but itself."""

import contextlib
import json
import os
import selectors
import socket
import struct
import subprocess
import sys
import threading
from time import monotonic
from typing import Any, final
from weakref import WeakValueDictionary, finalize

from jaxtyping import Bool
from torch import Tensor

from orrery.errors import MachineError, UsageError
from orrery.generation import form_process
from orrery.generation.form_process import ASKED, BEGINNING, BEGUN, FAILED, FOLLOWING, MASK, OVER, REFUSED, TOLD
from orrery.generation.grammar import Form, unfollowed, unpacked, unusable
from orrery.generation.guides import Begin, Guide
from orrery.generation.vocabulary import TokenVocabulary

STARTING = 60.0
"""Seconds in which the processes have to start."""
LATE = 5.0
"""Seconds beyond its own limit after which a process that says nothing is given up."""
GLANCE = 0.002
"""Seconds for which it is waited, after a token, whether the answer is whole: that spares a step of the model."""
SHORT = 0.05
"""Seconds after which a form that is still being compiled gives way to all others."""


@final
class FormsApart:
    """The processes that hold forms over one vocabulary; they start with the first form.

    Args:
        vocabulary: the tokens.
        glance: seconds for which it is waited, after a token, whether the answer is whole; by default `GLANCE`.
    """

    def __init__(self, vocabulary: TokenVocabulary, glance: float | None = None) -> None:
        self._vocabulary, self._glance = vocabulary, glance
        self._lock = threading.Lock()
        self._channel: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def begin(self, form: Form) -> Begin:
        """Return what begins the guide of an answer; any thread may ask, and waits.

        Raises:
            UsageError: the form cannot be read, or takes too long to begin with.
            MachineError: the library is not installed, or its processes do not start.
        """
        text = form.lark(self._vocabulary.blank).encode()
        ours, theirs = socket.socketpair()
        held = HeldForm(ours, self._vocabulary.size, self._glance)
        with theirs, self._lock:
            channel = self._channel or self._start()
            try:
                socket.send_fds(channel, [b"+"], [theirs.fileno()])
            except OSError:
                self.close()
                raise MachineError("the process that holds forms has ended", "ask again; it starts again") from None
        held.begin(text)
        return held.copy

    def close(self) -> None:
        """End the process that forks; those of forms end with their answers."""
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            self._process.wait(STARTING)
        self._channel = self._process = None

    def _start(self) -> socket.socket:
        """Start the process that forks and give it the tokens."""
        self._vocabulary.require()
        given = written(self._vocabulary)
        ours, theirs = socket.socketpair()
        with theirs:
            # A group of its own: Ctrl-C is for the program alone. And no session of its own: Linux may share the
            # processor between sessions first, and niceness then holds inside of one alone.
            self._process = subprocess.Popen(
                command(str(theirs.fileno())), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()], env=environment(), process_group=0,
            )  # fmt: skip
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError), self._process.stdin as pipe:
            pipe.write(json.dumps(given).encode())
        ours.settimeout(STARTING)
        try:
            ready = ours.recv(1)
        except TimeoutError:
            ready = b""
        if not ready:
            self._process.kill()
            ours.close()
            raise MachineError("the process that holds forms does not start", "reinstall orrery and llguidance")
        self._channel = ours
        return ours


def written(vocabulary: TokenVocabulary) -> dict[str, Any]:
    """Return the tokens as the processes read them."""
    tokens = [token.decode("latin-1") for token in vocabulary.tokens[: vocabulary.size]]
    return {"tokens": tokens, "control": vocabulary.control, "end": vocabulary.ends, "blank": vocabulary.blank}


def command(word: str) -> list[str]:
    """Return what starts a process; the folder that this one was started in is no place to import from (``-P``)."""
    return [sys.executable, "-P", "-m", form_process.__name__, word]


def environment() -> dict[str, str]:
    """Return what such a process sees of the environment: no keys."""
    variables = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT") if name in os.environ}
    return {**variables, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


@final
class HeldForm:
    """One form and the process that holds answers to it.

    Args:
        line: the way to the process.
        size: tokens of the vocabulary.
        glance: as in `FormsApart`.
        process: it, where no limit of its own ends it.
    """

    def __init__(
        self,
        line: socket.socket,
        size: int,
        glance: float | None = None,
        process: "subprocess.Popen[bytes] | None" = None,
    ) -> None:
        self._line, self.size, self.glance = line, size, glance
        self._stop = finalize(self, _stop, line, process)  # and with the line its process ends
        # select knows no descriptor beyond 1,023, and Windows nothing else.
        self._poll = getattr(selectors, "PollSelector", selectors.SelectSelector)()
        self._poll.register(line, selectors.EVENT_READ)
        self._read = bytearray()
        # An answer that is gone takes no more messages; and its form must go with it, which ends the process.
        self._copies: WeakValueDictionary[int, FormedApart] = WeakValueDictionary()
        self._number = 0
        self._first: Tensor | None = None
        self.gone: str | None = None

    def begin(self, text: bytes) -> None:
        """Have a form compiled. Raises `UsageError`."""
        self._send(struct.pack("<I", len(text)) + text)
        began = monotonic()
        process, slow = 0, False
        while monotonic() < began + BEGINNING + LATE and self.gone is None:
            for _, kind, content in self._messages(SHORT):
                if kind == MASK:
                    self._first = unpacked(content, self.size)
                    return
                if kind == REFUSED:
                    raise unusable(content.decode())
                if kind == BEGUN:
                    (process,) = struct.unpack("<I", content)
            if process and not slow and monotonic() > began + SHORT:
                slow = True
                with contextlib.suppress(OSError):
                    os.setpriority(os.PRIO_PROCESS, process, 19)
        self._end()
        raise UsageError(
            f"this form takes more than {BEGINNING:g} s to begin with",
            "simplify it: fewer repetitions within repetitions, shorter lists, smaller numbers",
        )

    def copy(self) -> "FormedApart":
        """Return the guide of an answer that begins."""
        self._number += 1
        return FormedApart(self, self._number, self._first)

    def push(self, copy: "FormedApart", token: int) -> None:
        """Have a token taken."""
        self._copies[copy.number] = copy
        self._send(ASKED.pack(copy.number, token))

    def listen(self, seconds: float) -> None:
        """Hand out what the process has said, or says within so many seconds."""
        for number, kind, content in self._messages(seconds):
            copy = self._copies.get(number)
            if copy is None:
                continue
            if kind == OVER:
                copy.whole = bool(content[0])
            elif kind == MASK:
                copy.mask = unpacked(content, self.size)
            elif kind == FAILED:
                copy.failed = content.decode()

    def give_up(self) -> None:
        """End a process that says nothing beyond its time."""
        self._end()

    def _send(self, content: bytes) -> None:
        try:
            self._line.setblocking(True)
            self._line.sendall(content)
        except OSError:
            self._end()

    def _messages(self, seconds: float) -> list[tuple[int, int, bytes]]:
        """Return what has come, after so many seconds at most."""
        if self.gone is None and self._poll.select(max(0.0, seconds)):
            try:
                part = self._line.recv(1 << 20)
            except OSError:
                part = b""
            if not part:
                self._end()
            self._read += part
        messages = []
        while len(self._read) >= TOLD.size:
            number, kind, length = TOLD.unpack_from(self._read)
            if len(self._read) < TOLD.size + length:
                break
            messages.append((number, kind, bytes(self._read[TOLD.size : TOLD.size + length])))
            del self._read[: TOLD.size + length]
        return messages

    def _end(self) -> None:
        self.gone = f"the tokens that may come next were not found within {FOLLOWING:g} s"
        self._stop()


def _stop(line: socket.socket, process: "subprocess.Popen[bytes] | None") -> None:
    """Close the way to a process, and end it where it does not end by itself."""
    line.close()
    if process is not None:
        process.kill()
        process.wait()


@final
class FormedApart(Guide):
    """Only tokens by which an answer can still become one of the form, as the process that holds it says.

    Args:
        held: the form.
        number: which of the answers to it.
        mask: the tokens that may come first.

    Attributes:
        mask: the tokens that may come next; nothing while they are being found.
        whole: whether the answer is; nothing while it is not known.
        failed: why no token may follow.
    """

    def __init__(self, held: HeldForm, number: int, mask: Bool[Tensor, "V"] | None) -> None:
        self._held, self.number = held, number
        self.mask = mask
        self.whole: bool | None = False
        self.failed: str | None = None

    def ready(self, seconds: float) -> bool:
        """Return whether it is known what may come next, after so many seconds at most."""
        until = monotonic() + seconds
        self._held.listen(0.0)
        while not self._known and (left := until - monotonic()) > 0:
            self._held.listen(left)
        return self._known

    @property
    def _known(self) -> bool:
        return self.mask is not None or self.failed is not None or self._held.gone is not None

    def allowed(self) -> Bool[Tensor, "V"]:
        """Return which tokens lead on.

        Raises:
            UsageError: the form became too hard to follow.
        """
        if not self.ready(FOLLOWING + LATE):
            self._held.give_up()
        if self.mask is None:
            raise unfollowed(self.failed or self._held.gone or "its process says nothing")
        return self.mask

    def push(self, token: int) -> None:
        """Take a token; what may follow is found beside the model's next step."""
        self.mask, self.whole = None, None
        self._held.push(self, token)

    @property
    def over(self) -> bool:
        """Whether the answer is known to be whole; at the latest that is known when it is known what may come next."""
        until = monotonic() + (GLANCE if self._held.glance is None else self._held.glance)
        while self.whole is None and self._held.gone is None and (left := until - monotonic()) > 0:
            self._held.listen(left)
        return bool(self.whole)
