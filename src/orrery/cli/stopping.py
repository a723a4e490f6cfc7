"""SIGINT, SIGTERM and SIGHUP: the program ends with 128 and the signal's number, soon, and without a traceback.

Until a verb runs there is nothing to lose, and a signal ends the process where it stands. From then on the first
signal unwinds like an exception, so that what lies aside is removed; a second one, or one inside an import, ends the
process at once. One that comes inside a destructor, where Python drops every exception, is raised again after it. Code
that does not come back to Python, or swallows the exception, is waited for a few seconds.

A verb with a way of its own to stop (a training saves) puts its handlers in the place of these, or, where it goes on
after a SIGINT, says so with `dealt_with`.
"""

import os
import signal
import sys
import time

TYPE_CHECKING = False  # as type checkers understand it, without typing: what is imported here delays `Stops.before`
if TYPE_CHECKING:
    from sys import UnraisableHookArgs
    from types import FrameType
    from typing import NoReturn

NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE = 3.0
"""Seconds between a signal and the end of a process that does not unwind."""

PAUSE = 0.01
"""Seconds between an exception that a destructor dropped and the next."""

_MESSAGE = b"error: interrupted\n"
_SHOW_CURSOR = b"\x1b[?25h"


class Stops:
    """What the process does about a signal, in its three times: before a verb, during it, after it."""

    def __init__(self) -> None:
        self.raised: int | None = None
        self.earned: int | None = None
        self._asked: float | None = None

    def before(self) -> None:
        """Leave at once; what the parent process had this one ignore stays ignored."""
        for number in NUMBERS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, leave)
        import threading

        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))
        threading.Thread(target=self._watch, args=(reader,), daemon=True).start()

    def during(self) -> None:
        """Unwind at the first signal."""
        for number in NUMBERS:
            if signal.getsignal(number) is leave:
                signal.signal(number, self.receive)
        sys.unraisablehook = self.dropped

    def after(self, code: int) -> None:
        """Leave with the code that the verb earned, also at a signal that comes while this is said."""
        self.earned = code
        for number in NUMBERS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda number, frame: os._exit(code))

    def receive(self, number: int, frame: "FrameType | None") -> None:
        """Unwind, or leave where that has begun already, or the verb has ended."""
        if self.earned is not None:
            os._exit(self.earned)
        if self.raised is not None or _imports(frame):
            leave(number, frame)
        self.raised = number
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)

    def dropped(self, lost: "UnraisableHookArgs") -> None:
        """Send a signal once more whose exception Python could raise nowhere; show any other exception of that kind."""
        if self.raised is None or not isinstance(lost.exc_value, KeyboardInterrupt | SystemExit):
            sys.__unraisablehook__(lost)
            return
        import threading

        number, self.raised = self.raised, None
        again = threading.Timer(PAUSE, self._send, [number])
        again.daemon = True
        again.start()

    def _send(self, number: int) -> None:
        """Send a signal to this process, unless another has come."""
        if self.raised is None:
            os.kill(os.getpid(), number)

    def dealt_with(self) -> None:
        """Go on as if there had been no signal."""
        self.raised = self._asked = None

    def _watch(self, reader: int) -> None:
        """Leave a while after a signal that nothing was done about; the system tells of it at once."""
        while received := os.read(reader, 64):
            for number in received:
                if number in NUMBERS and signal.getsignal(number) == self.receive:
                    since = self._asked = self._asked or time.monotonic()
                    time.sleep(PATIENCE)
                    if self._asked != since:
                        continue
                    if signal.getsignal(number) == self.receive:
                        leave(number, None)
                    os.kill(os.getpid(), number)  # a training has begun since, which has a way of its own to stop


def _imports(frame: "FrameType | None") -> bool:
    """Say whether a module is being imported: some swallow every exception there, and nothing is lost."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def leave(number: int, frame: "FrameType | None") -> "NoReturn":
    """End the process where it stands."""
    try:
        if os.isatty(2):
            os.write(2, _SHOW_CURSOR)
        if number == signal.SIGINT:
            os.write(2, _MESSAGE)
    finally:
        os._exit(128 + number)


def ignore() -> None:
    """Let the rest of the process's end be undisturbed: Python gives signals back to the system while it ends."""
    for number in NUMBERS:
        signal.signal(number, signal.SIG_IGN)


STOPS = Stops()
"""Those of this process."""


def dealt_with() -> None:
    """Say that a SIGINT was meant for something smaller than the program, which goes on."""
    STOPS.dealt_with()


def cause(error: BaseException) -> BaseException:
    """Return the signal that an error comes from, else the error: an import that is interrupted fails in any way."""
    if STOPS.raised is None or isinstance(error, KeyboardInterrupt | SystemExit):
        return error
    return KeyboardInterrupt() if STOPS.raised == signal.SIGINT else SystemExit(128 + STOPS.raised)
