"""The answers to one request: its rows in the engine, what they tell while they grow, and how they end."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar, final

from starlette.types import Receive

from orrery.errors import OrreryError, UsageError
from orrery.generation.requests import Answering, CancelledError, Request, TokenScore, Written
from orrery.serving.errors import ApiError, api_error, closing
from orrery.serving.held_scores import HeldScores
from orrery.serving.responses import ResponseInputs
from orrery.serving.schema.sampling import SamplingFields
from orrery.serving.served import Admission, Served
from orrery.serving.usage import places_of


class GoneError(Exception):
    """The client has closed its connection."""


@dataclass
class AnswerPiece:
    """What became known of one answer since it was last looked at.

    Attributes:
        index: which of the request's answers.
        answering: the answer.
        text: what has become certain.
        parts: the tokens that were written, each with the text that it made certain.
        scores: of the tokens, where they were asked for.
        ended: whether this is its last piece.
    """

    index: int
    answering: Answering
    text: str = ""
    parts: list[tuple[int, str]] = field(default_factory=list)
    scores: list[TokenScore] = field(default_factory=list)
    ended: bool = False


class Prepared(Protocol):
    """What a route has made of a request."""

    @property
    def requests(self) -> Sequence[Request]:
        """Those for the engine, one an answer."""
        ...


Asked = TypeVar("Asked", bound=SamplingFields)
Own = TypeVar("Own", bound=Prepared)


async def begun(
    served: Served, request: Asked, prepare: Callable[[Served, Asked], Own], *, stream: bool
) -> "tuple[Own, Answers]":
    """Let a request in, prepare it beside the loop, and begin to answer it.

    Raises:
        ApiError: the model is another or writes nothing, there is no room, or the request cannot be answered.
    """
    served.adapter_of(request.model)
    served.writer()
    place = served.enter()
    try:
        prepare_with = served.form if request.has_form else served.do
        prepared = await prepare_with(prepare, served, request)
        return prepared, Answers(served, place, prepared.requests, stream=stream)
    except BaseException:
        place.release()
        raise


@final
class Answers:
    """The answers to one request, at most so many at once as the engine has rows.

    Args:
        served: what writes them.
        place: the request's; given back with ``close``.
        requests: one an answer.
        stream: whether each token is told of, or the end alone.

    Attributes:
        seconds: of each answer that has ended, until its first token and until its end.
        id: what names the response; its answers are remembered under it, so that their insides can be looked at.
    """

    def __init__(self, served: Served, place: Admission, requests: Sequence[Request], *, stream: bool = False) -> None:
        served.loop_calls.open()
        self._served, self._worker, self._place = served, served.writer(), place
        self._requests, self._stream = list(requests), stream
        self._going: dict[int, Answering] = {}
        self._first: dict[int, float] = {}
        self.seconds: dict[int, tuple[float, float]] = {}
        self._began = time.perf_counter()
        self._next, self._closed = 0, False
        self._news: dict[int, AnswerPiece] = {}
        self._held: dict[int, HeldScores] = {}
        self._event = asyncio.Event()
        self._gone = False
        self.id = secrets.token_hex(12)
        served.responses.begin(self.id)

    async def all(self, receive: Receive) -> list[Answering]:
        """Return the answers once all have ended.

        Raises:
            ApiError: one ended before its own end.
            GoneError: the client has closed its connection.
        """
        ended: list[Answering | None] = [None] * len(self._requests)
        async for pieces in self.pieces(receive):
            for piece in pieces:
                if piece.ended:
                    ended[piece.index] = piece.answering
        return [answering for answering in ended if answering is not None]

    async def pieces(self, receive: Receive, patience: float | None = None) -> AsyncIterator[list[AnswerPiece]]:
        """Yield what became known, as soon as it is, until all have ended; errors as in ``all``.

        Args:
            receive: tells when the client leaves.
            patience: seconds without news after which nothing is yielded, again and again; by default it is waited for.
        """
        watch = asyncio.create_task(self._watch(receive))
        try:
            self._fill()
            left = len(self._requests)
            while left:
                try:
                    async with asyncio.timeout(patience):
                        await self._event.wait()
                except TimeoutError:
                    yield []
                    continue
                self._event.clear()
                if self._gone:
                    raise GoneError
                news, self._news = list(self._news.values()), {}
                ended = [piece.answering for piece in news if piece.ended]
                for answering in ended:
                    _check(answering)
                left -= len(ended)
                self._fill()
                if news:
                    yield news
        finally:
            watch.cancel()
            self.close()

    def close(self) -> None:
        """Cancel what is under way and give the place back."""
        if self._closed:
            return
        self._closed = True
        if self._going:
            self._served.metrics.count("orrery_answers_cancelled_total", len(self._going))
        for answering in self._going.values():
            self._worker.cancel(answering)
        self._place.release()

    def _fill(self) -> None:
        """Hand over as many requests as may be answered at once."""
        while self._next < len(self._requests) and len(self._going) < self._served.settings.most_rows:
            index, self._next = self._next, self._next + 1
            callback = self._told if self._stream else self._timed
            request = replace(self._requests[index], told=partial(callback, index))
            try:
                self._going[index] = self._worker.submit(request, partial(self._ended, index))
            except OrreryError as error:
                raise api_error(error) from None

    def _timed(self, index: int, written: Written) -> None:
        """Remember when the first token came; on the engine's thread."""
        if index not in self._first:
            self._first[index] = time.perf_counter()

    def _told(self, index: int, written: Written) -> None:
        self._timed(index, written)
        self._served.loop_calls.send(partial(self._take, index, written))

    def _ended(self, index: int, answering: Answering) -> None:
        first, now = self._first.get(index), time.perf_counter()
        counts = (places_of(answering.request.prompt), answering.reused, len(answering.written))
        self.seconds[index] = ((now if first is None else first) - self._began, now - self._began)
        self._served.metrics.answered(*counts, None if first is None else first - self._began, now - self._began)
        self._served.loop_calls.send(partial(self._end, index, answering))

    def _take(self, index: int, written: Written) -> None:
        piece = self._news.setdefault(index, AnswerPiece(index, self._going[index]))
        piece.text += written.text
        piece.parts.append((written.token, written.text))
        if written.score is not None:
            held = self._held.setdefault(index, HeldScores(self._served.lm.tokenizer))
            piece.scores += held.push(written.score, written.text)
        self._event.set()

    def _end(self, index: int, answering: Answering) -> None:
        self._going.pop(index, None)
        if answering.error is None:
            self._served.responses.add(self.id, index, ResponseInputs.of(answering))
        piece = self._news.setdefault(index, AnswerPiece(index, answering))
        piece.ended = True
        if index in self._held:
            piece.scores += self._held.pop(index).finish(None if answering.row is None else answering.row.finish_reason)
        self._event.set()

    async def _watch(self, receive: Receive) -> None:
        """Wait until the client leaves."""
        with suppress(ApiError):
            while (await receive())["type"] != "http.disconnect":
                pass
        self._gone = True
        self._event.set()


def _check(answering: Answering) -> None:
    """Raise what ended an answer before its own end, as the client is told of it."""
    error = answering.error
    if error is None:
        return
    if isinstance(error, UsageError):
        raise api_error(error)
    if isinstance(error, CancelledError):
        raise closing()
    raise api_error(error)
