"""From tokens to text as they come: no half characters, and nothing that belongs to a stop string."""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from orrery.errors import UsageError


@runtime_checkable
class TextDecoder(Protocol):
    """What turns one id after another into text, such as ``orrery.text.streaming.StreamDecoder``."""

    def push(self, id: int) -> str:
        """Return the text that has become certain with this id, possibly none."""
        ...

    def finish(self) -> str:
        """Return what was held back."""
        ...


class AnswerText:
    """The text of one answer: it ends before the first stop string, wherever token borders lie.

    Text that may be the beginning of a stop string is held back until it is certain; so the streamed pieces joined
    are always ``text``.
    """

    def __init__(
        self, decoder: TextDecoder, stop: Sequence[str] = (), show: Callable[[str], None] | None = None
    ) -> None:
        if "" in stop:
            raise UsageError("an empty stop string stops everywhere", "leave it away")
        self._decoder = decoder
        self._stop = tuple(stop)
        self._show = show
        self._held = ""
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        """The text so far, without what is held back."""
        return "".join(self._pieces)

    @property
    def pieces(self) -> int:
        """How many pieces of text have come."""
        return len(self._pieces)

    def since(self, pieces: int) -> str:
        """Return the text that came behind the first ``pieces`` of its pieces."""
        return "".join(self._pieces[pieces:])

    def push(self, id: int) -> bool:
        """Take a token; return whether a stop string is now complete, after which nothing more may come."""
        return self._take(self._decoder.push(id))

    def finish(self) -> bool:
        """Let go of what is held back; return whether that completed a stop string."""
        stopped = self._take(self._decoder.finish())
        if not stopped:
            self._emit(len(self._held))
        return stopped

    def _take(self, piece: str) -> bool:
        self._held += piece
        if not self._stop:
            self._emit(len(self._held))
            return False
        places = [place for place in map(self._held.find, self._stop) if place >= 0]
        if places:
            self._emit(min(places))
            self._held = ""
            return True
        self._emit(len(self._held) - self._doubtful())
        return False

    def _doubtful(self) -> int:
        """Return the length of the longest end of the held text that begins a stop string."""
        longest = min(len(self._held), max(map(len, self._stop), default=1) - 1)
        for length in range(longest, 0, -1):
            if any(stop.startswith(self._held[-length:]) for stop in self._stop):
                return length
        return 0

    def _emit(self, length: int) -> None:
        piece, self._held = self._held[:length], self._held[length:]
        if piece:
            self._pieces.append(piece)
            if self._show is not None:
                self._show(piece)
