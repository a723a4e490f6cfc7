"""Answers that are sent as they grow: server-sent events, as OpenAI's clients read them."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any, final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from orrery.serving.answers import Answers, GoneError, Piece
from orrery.serving.errors import ENDINGS, api_error

Tell = Callable[[Piece], list[dict[str, Any]]]
"""From what became known of an answer to the objects that say so."""


@final
class EventStream(Response):
    """The stream of one request.

    Args:
        answers: what grows.
        opening: objects that are sent before anything is written.
        tell: the objects of each piece.
        closing: the objects that are sent at the end.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        answers: Answers,
        tell: Tell,
        opening: list[dict[str, Any]],
        closing: Callable[[], list[dict[str, Any]]],
    ) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._answers, self._tell, self._opening, self._closing = answers, tell, opening, closing

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
        """Yield the events; a failure is the last of them, since the status has been sent."""
        if self._opening:
            yield _events(self._opening)
        try:
            async for pieces in self._answers.pieces(receive):
                found = [event for piece in pieces for event in self._tell(piece)]
                if found:
                    yield _events(found)
        except GoneError:
            raise
        except ENDINGS:
            raise
        except BaseException as error:
            yield _events([api_error(error).body])
            return
        yield _events(self._closing()) + b"data: [DONE]\n\n"


def _events(objects: list[dict[str, Any]]) -> bytes:
    return b"".join(
        b"data: " + json.dumps(one, allow_nan=False, separators=(",", ":")).encode() + b"\n\n" for one in objects
    )
