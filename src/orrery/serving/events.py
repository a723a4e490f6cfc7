"""Answers that are sent as they grow: server-sent events, as OpenAI's clients read them, and lines of JSON."""

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Protocol, final, runtime_checkable

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from orrery.serving.answers import AnswerPiece, Answers, GoneError
from orrery.serving.errors import ENDINGS, ApiError, AsciiJson, api_error


@runtime_checkable
class Teller(Protocol):
    """What says an answer while it grows, object by object."""

    def opening(self) -> list[dict[str, Any]]:
        """Return what is sent before anything is written."""
        ...

    def tell(self, piece: AnswerPiece) -> list[dict[str, Any]]:
        """Return what is sent of what became known of one answer."""
        ...

    def closing(self) -> list[dict[str, Any]]:
        """Return what is sent at the end."""
        ...

    def failing(self, error: ApiError) -> list[dict[str, Any]]:
        """Return what is sent in the place of the rest."""
        ...


QUIET = 15.0
"""Seconds without an event after which a comment is sent; a reader who left is noticed by it, too."""
COMMENT = b": nothing new\n\n"


@dataclass(frozen=True)
class Frames:
    """How objects become bytes.

    Attributes:
        media_type: what all of them are.
        one: the bytes of one object.
        end: the bytes behind the last object of a stream that did not fail.
        quiet: what is sent after some seconds without news, so that nobody between takes the connection for dead.
    """

    media_type: str
    one: Callable[[dict[str, Any]], bytes]
    end: bytes = b""
    quiet: bytes = COMMENT


def _json(one: dict[str, Any]) -> bytes:
    return json.dumps(one, allow_nan=False, separators=(",", ":")).encode()


EVENTS = Frames("text/event-stream", lambda one: b"data: " + _json(one) + b"\n\n", b"data: [DONE]\n\n")
"""Of completions and chats."""
NAMED_EVENTS = Frames(
    "text/event-stream", lambda one: b"event: " + one["type"].encode() + b"\ndata: " + _json(one) + b"\n\n"
)
"""Of responses, each event under the name of its type."""
LINES = Frames("application/x-ndjson", lambda one: _json(one) + b"\n", quiet=b"")
"""Of Ollama's interface."""


@final
class EventStream(Response):
    """The stream of one request.

    Args:
        answers: what grows.
        teller: what says it.
        frames: how that is sent.
    """

    def __init__(self, answers: Answers, teller: Teller, frames: Frames = EVENTS) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"}, media_type=frames.media_type)
        del self.headers["content-length"]
        self._answers, self._teller, self._frames = answers, teller, frames

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; who leaves ends it."""
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async for data in self._data(receive):
                await send({"type": "http.response.body", "body": data, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except GoneError:
            return
        finally:
            self._answers.close()

    async def _data(self, receive: Receive) -> AsyncIterator[bytes]:
        """Yield the frames; a failure is the last of them, since the status has been sent."""
        if opening := self._teller.opening():
            yield self._framed(opening)
        try:
            async for pieces in self._answers.pieces(receive, QUIET):
                if not pieces and self._frames.quiet:
                    yield self._frames.quiet
                events = [event for piece in pieces for event in self._teller.tell(piece)]
                if events:
                    yield self._framed(events)
        except GoneError:
            raise
        except ENDINGS:
            raise
        except BaseException as error:
            yield self._framed(self._teller.failing(api_error(error)))
            return
        yield self._framed(self._teller.closing()) + self._frames.end

    def _framed(self, objects: list[dict[str, Any]]) -> bytes:
        return b"".join(map(self._frames.one, objects))


async def answered(
    answers: Answers, receive: Receive, take: Callable[[AnswerPiece], Any], whole: Callable[[], dict[str, Any]]
) -> Response:
    """Return what is told of answers once all have ended; nobody reads what is sent to a client that has left.

    Args:
        answers: what grows.
        receive: tells when the client leaves.
        take: is given each piece.
        whole: returns what is told.

    Raises:
        ApiError: one ended before its own end.
    """
    try:
        async for pieces in answers.pieces(receive):
            for piece in pieces:
                take(piece)
    except GoneError:
        return Response(status_code=499)
    return AsciiJson(whole())
