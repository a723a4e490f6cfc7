"""What grows while it is read, as server-sent events, until the reader leaves or the server stops."""

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, final

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from orrery.serving.errors import api_error
from orrery.serving.events import COMMENT, QUIET

PAUSE = 0.5
"""Seconds between two looks."""

News = Callable[[], Awaitable[Sequence[Mapping[str, Any]]]]
"""What has come since the last call."""


@final
class Following(Response):
    """One reader's stream.

    Args:
        news: asked again and again.
        over: whether the server stops.
        left: called once, when the stream ends.
    """

    media_type = "text/event-stream"

    def __init__(self, news: News, over: Callable[[], bool], left: Callable[[], None]) -> None:
        super().__init__(headers={"X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._news, self._over, self._left = news, over, left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what comes."""
        gone = asyncio.ensure_future(_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            quiet = 0.0
            while not gone.done() and not self._over():
                data, failed = await self._data()
                quiet = 0.0 if data else quiet + PAUSE
                if data or quiet >= QUIET:
                    await send({"type": "http.response.body", "body": data or COMMENT, "more_body": True})
                    quiet = 0.0
                if failed:
                    break
                await asyncio.wait([gone], timeout=PAUSE)
            if not gone.done():
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await gone
            self._left()

    async def _data(self) -> tuple[bytes, bool]:
        """Return what is sent now, and whether it is the last: a failure, since the status has been sent."""
        try:
            return _events(await self._news()), False
        except Exception as error:
            return _events([api_error(error).body]), True


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _events(objects: Sequence[Mapping[str, Any]]) -> bytes:
    return b"".join(
        b"data: " + json.dumps(one, allow_nan=False, separators=(",", ":")).encode() + b"\n\n" for one in objects
    )
