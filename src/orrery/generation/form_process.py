"""Processes that hold answers to forms, asked by `forms_apart`: ``python -m orrery.generation.form_process SOCKET``.

The first reads the tokens once, and forks one for each form. A form that is made to be slow takes time of its own
process alone; the kernel ends it at its limit, in the midst of whatever it computes. With ``alone`` in the place of a
socket it holds one form itself, for `forms_alone`.
"""

import json
import os
import signal
import socket
import struct
import sys
from contextlib import suppress
from typing import Any, NoReturn

from orrery.generation.vocabulary import TokenVocabulary, is_whole, matcher_of, reason_of

BEGINNING = 2.0
"""Seconds in which a form has to be compiled, and the tokens found with which an answer may begin."""
FOLLOWING = 2.0
"""Seconds in which the tokens have to be found that may follow one."""
MEMORY = 1 << 30
"""Bytes of address space beyond those of the first process."""

ALONE = "alone"
ASKED, TOLD = struct.Struct("<II"), struct.Struct("<IBI")
"""A copy's number and a token; a copy's number, a kind, and the length of what follows."""
OVER, MASK, REFUSED, FAILED, BEGUN = range(5)
"""Whether an answer is whole; the tokens that may follow; why there are none, at first or later; the process."""


def main() -> NoReturn:
    """Read the tokens from standard input, then hold one form, or fork a process for each descriptor that comes."""
    given = json.load(sys.stdin)
    tokens = [token.encode("latin-1") for token in given["tokens"]]
    vocabulary = TokenVocabulary(tokens, given["control"], given["end"], given["blank"])
    _ = vocabulary.engine
    if sys.argv[1] == ALONE:
        line = socket.create_connection(("127.0.0.1", given["port"]))
        line.sendall(given["secret"].encode())
        _hold(line, vocabulary)
    _fork(socket.socket(fileno=int(sys.argv[1])), vocabulary)


def _fork(channel: socket.socket, vocabulary: TokenVocabulary) -> NoReturn:
    """Fork a process for each descriptor that comes, until none can come."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel forgets those that end
    channel.send(b"+")
    while True:
        message, handles, _, _ = socket.recv_fds(channel, 1, 1)
        if not message:
            os._exit(0)
        if os.fork() == 0:
            channel.close()
            _hold(socket.socket(fileno=handles[0]), vocabulary)
        for handle in handles:
            os.close(handle)


def _hold(line: socket.socket, vocabulary: TokenVocabulary) -> NoReturn:
    """Hold the answers to one form, until nobody asks any more."""
    try:
        _bound_memory()
        _tell(line, 0, BEGUN, struct.pack("<I", os.getpid()))
        (length,) = struct.unpack("<I", _read(line, 4))
        text = _read(line, length).decode()
        _bound_time(BEGINNING)
        first = matcher_of(text, vocabulary)
        if _tell_next(line, 0, first, REFUSED):
            copies = {}
            while True:
                _bound_time(0)
                number, token = ASKED.unpack(_read(line, ASKED.size))
                _bound_time(FOLLOWING)
                if number not in copies:
                    copies[number] = first.deep_copy()
                own = copies[number]
                own.consume_token(token)
                _tell(line, number, OVER, bytes([is_whole(own)]))
                _tell_next(line, number, own, FAILED)
    finally:  # whatever happened, this is not the process that forks
        os._exit(0)


def _tell_next(line: socket.socket, number: int, matcher: Any, kind: int) -> bool:
    """Tell which tokens may follow, or why none may; return whether some may."""
    mask = b"" if matcher.is_error() else matcher.compute_bitmask()
    if matcher.is_error():
        _tell(line, number, kind, reason_of(matcher).encode())
        return False
    _tell(line, number, MASK, mask)
    return True


def _tell(line: socket.socket, number: int, kind: int, content: bytes) -> None:
    line.sendall(TOLD.pack(number, kind, len(content)) + content)


def _read(line: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        part = line.recv(size - len(received))
        if not part:
            os._exit(0)
        received += part
    return received


def _bound_time(seconds: float) -> None:
    """Have the kernel end this process after so many seconds; 0 for never. Windows has no such limit."""
    if sys.platform != "win32":
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _bound_memory() -> None:
    with suppress(ImportError, OSError, ValueError):
        import resource

        with open("/proc/self/statm") as file:
            own = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (own + MEMORY, own + MEMORY))


if __name__ == "__main__":
    main()
