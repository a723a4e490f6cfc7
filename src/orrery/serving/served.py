"""A model that is served: its engine, its name, and who is let in."""

import asyncio
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Annotated, Any, ParamSpec, TypeVar, final

import torch
from fastapi import Depends
from starlette.requests import Request as HttpRequest

from orrery.errors import OrreryError, UsageError
from orrery.exchange.reading.read import Stored
from orrery.exchange.stored import writer
from orrery.generation.engine import Engine
from orrery.generation.forms import FormsOfVocabularies
from orrery.generation.grammar import Form
from orrery.generation.guides import Begin
from orrery.generation.picture_writer import HeldPictures, PictureWriter
from orrery.generation.requests import Request
from orrery.generation.row import Limits
from orrery.generation.vocabulary import TokenVocabulary
from orrery.language_model.captions import writes_captions
from orrery.language_model.model import LanguageModel
from orrery.language_model.pictures import reads_pictures
from orrery.page.law_run import LawRun
from orrery.page.passes import Passes
from orrery.serving.abilities import COMPLETIONS, abilities, missing
from orrery.serving.errors import ApiError, busy, closing
from orrery.serving.kept_responses import KeptResponses
from orrery.serving.loop_calls import LoopCalls
from orrery.serving.metrics import Metrics
from orrery.serving.responses import Responses
from orrery.serving.settings import ServerSettings
from orrery.serving.token_texts import TokenTexts
from orrery.serving.worker import Worker
from orrery.text.chat.render import ChatTemplate
from orrery.tuning import RowAdapters

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

PREPARING = 4
"""Threads that tokenise and render, so that the loop of events never waits for a long text."""
FORMING = 32
"""Threads that wait for the forms of answers, so that a slow one keeps neither texts nor other forms waiting."""
LOOKING = 32
"""Requests that may look inside or wait for it; one is computed at a time, and more are refused."""


@final
class Admission:
    """One request among those that are let in; its place is given back once."""

    def __init__(self, served: "Served") -> None:
        self._served, self._began, self._held = served, time.perf_counter(), True

    def release(self) -> None:
        """Give the place back."""
        if self._held:
            self._held = False
            self._served.leave(time.perf_counter() - self._began)

    def __enter__(self) -> "Admission":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@final
class Served:
    """What the routes share.

    Args:
        lm: the model.
        settings: how it is served.
        name: what clients call it; by default that of its run, its repository or its folder.

        adapters: LoRAs over the model; a client that names one is answered with it.

    Raises:
        UsageError: an adapter is called what the model is called.

    Attributes:
        lm: the model.
        name: what clients call it.
        created: when serving began, in seconds since 1970.
        metrics: what is counted.
        responses: the answers that were given last.
        kept: the conversations that the next response may go on from.
        loop_calls: brings what the engine's thread tells to the loop of events.
        pictures: those that are written about; none of a model of texts.
        worker: the engine's thread; none for a model that writes nothing.
        draining: no more requests are taken.
        routes: those that the model can answer.
        followers: pages that follow the run.
        computing: held by the one request whose rows are read as a whole, not written by the engine.
    """

    def __init__(
        self,
        lm: LanguageModel,
        settings: ServerSettings,
        name: str | None = None,
        adapters: RowAdapters | None = None,
    ) -> None:
        self.lm, self.settings = lm, settings
        self.name = name or lm.stored.name
        self.created = int(time.time())
        self.metrics, self.loop_calls = Metrics(), LoopCalls()
        self.responses, self.kept = Responses(), KeptResponses()
        self.adapters = () if adapters is None else adapters.names
        if self.name in self.adapters:
            raise UsageError(
                f"the model and an adapter are both called {self.name!r}", "name the model otherwise: --name"
            )
        self.pictures = HeldPictures() if writes_captions(lm.stored) else None
        self.engine = _engine_of(lm, settings, adapters, self.pictures)
        # Requests are counted below, before they cost anything; the worker holds the rows of those that are let in.
        self.worker = None if self.engine is None else Worker(self.engine, 1 << 40)
        self.draining, self.followers = False, 0
        self.routes = abilities(lm)
        self.computing = asyncio.Lock()
        self._pool = ThreadPoolExecutor(PREPARING, "orrery-preparing")
        self._forming, self._forms = ThreadPoolExecutor(FORMING, "orrery-forming"), FormsOfVocabularies()
        self._looks, self._looking = ThreadPoolExecutor(1, "orrery-looking"), 0
        if self.engine is not None:
            _ = self.tokens.longest  # spelt out now: the first request that asks would keep all others waiting
        self._inside, self._most, self._usual = 0, settings.most_rows + settings.queue, 1.0

    @property
    def stored(self) -> Stored:
        """The model's parts as they were read."""
        return self.lm.stored

    @property
    def failed(self) -> BaseException | None:
        """What ended the engine's thread; nothing while all is well."""
        return None if self.worker is None else self.worker.error

    @cached_property
    def passes(self) -> Passes:
        """What was looked into."""
        return Passes(self.lm, self.settings.laws)

    @cached_property
    def laws(self) -> LawRun:
        """The run of the laws beside the server."""
        return LawRun()

    @cached_property
    def tokens(self) -> TokenTexts:
        """How each token reads."""
        return TokenTexts(self.lm.tokenizer)

    @cached_property
    def template(self) -> ChatTemplate:
        """The template of chats.

        Raises:
            ApiError: the model came without one.
        """
        try:
            return self.lm.chat_template()
        except OrreryError as error:
            raise ApiError(400, f"{error.message}: {error.hint}", code="no_chat_template") from None

    def enter(self) -> Admission:
        """Let a request in; it is refused at once where too many are inside.

        Raises:
            ApiError: 429 where the queue is full, 503 where the server stops or has failed.
        """
        self.check_room()
        self._inside += 1
        return Admission(self)

    def check_room(self) -> None:
        """Refuse a request for which there is no room, before anything is done for it; errors as in ``enter``."""
        if self.draining or self.failed is not None:
            raise closing()
        if self._inside >= self._most:
            self.metrics.count("orrery_requests_rejected_total")
            raise busy(self._wait(), f"{self._inside} requests are being answered or wait")

    def leave(self, seconds: float) -> None:
        """Take note that a request has left, after so many seconds."""
        self._inside -= 1
        self._usual += 0.1 * (seconds - self._usual)

    def check_model(self, name: str | None) -> None:
        """Refuse the name of another model, and of an adapter, which only writes.

        Raises:
            ApiError: 404, or 400 for an adapter.
        """
        if self.adapter_of(name) is not None:
            message = f"the adapter {name!r} answers completions and chats; ask {self.name!r} for this"
            raise ApiError(400, message, param="model", code="unsupported_model")

    def adapter_of(self, name: str | None) -> str | None:
        """Return the adapter that a name means; nothing for the model itself.

        Where no model is named, Hugging Face's package for JavaScript names the server's address, and that for Python
        `dummy`.

        Raises:
            ApiError: 404 for the name of another model.
        """
        if name in (None, self.name):
            return None
        if name in self.adapters:
            return name
        if name == "dummy" or name.startswith(("http://", "https://")):
            return None
        known = ", ".join(map(repr, (self.name, *self.adapters)))
        message = f"the model {name[:100]!r} does not exist; this server has {known}"
        raise ApiError(404, message, param="model", code="model_not_found")

    def check_inspection(self) -> None:
        """Refuse to show the inside where the settings do.

        Raises:
            ApiError: 403.
        """
        if not self.settings.inspects:
            raise ApiError(403, "this server does not show its inside; start it with --inspect", code="no_inspection")

    def require(self, path: str) -> None:
        """Refuse a route that the model cannot answer.

        Raises:
            ApiError: 400.
        """
        if path not in self.routes:
            raise missing(path, self.routes)

    def writer(self) -> Worker:
        """Return the engine's thread.

        Raises:
            ApiError: the model writes nothing.
        """
        if self.worker is None:
            raise missing(COMPLETIONS, self.routes)
        return self.worker

    async def do(self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Return what work returns that takes long, done by another thread."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, lambda: work(*args, **kwargs))

    async def form(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Return what work returns that makes a form ready, done by another thread than those of `do`."""
        return await asyncio.get_running_loop().run_in_executor(self._forming, lambda: work(*args, **kwargs))

    def held(self, form: Form, vocabulary: TokenVocabulary) -> Begin:
        """Return what begins the guide of an answer of a form, which a process of its own holds."""
        return self._forms.begin(form, vocabulary)

    async def look(
        self, work: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Return what work returns that looks inside the model, done by the one thread for it.

        Raises:
            ApiError: 429 where too many wait.
        """
        if self._looking >= LOOKING:
            raise busy(1, f"{self._looking} requests look inside or wait for it")
        self._looking += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._looks, lambda: work(*args, **kwargs))
        finally:
            self._looking -= 1

    def gauges(self) -> Mapping[str, float]:
        """Return what is so at this moment, for Prometheus."""
        values = {"orrery_requests_inside": float(self._inside), "orrery_requests_inside_most": float(self._most)}
        if self.engine is not None:
            values |= {
                "orrery_rows_waiting": self.engine.waiting,
                "orrery_rows": self.engine.rows,
                "orrery_cache_tokens": self.engine.tokens,
                "orrery_cache_tokens_most": self.engine.most_tokens,
                "orrery_prefix_tokens": self.engine.prefixes.tokens,
            }
        return values

    def close(self, grace: float) -> bool:
        """Take no more requests and wait for those under way; return whether every answer came to its own end."""
        self.draining = True
        self.laws.stop()
        closed = self.worker is None or self.worker.close(grace)
        self._pool.shutdown(wait=False)
        self._forming.shutdown(wait=False, cancel_futures=True)
        self._forms.close()
        self._looks.shutdown(wait=False, cancel_futures=True)
        return closed

    def _wait(self) -> int:
        """Return the seconds after which there should be a place."""
        return max(1, min(60, math.ceil(self._usual)))


def _engine_of(
    lm: LanguageModel, settings: ServerSettings, adapters: RowAdapters | None, pictures: HeldPictures | None
) -> Engine | None:
    """Return what writes, for a model that does."""
    if not lm.model.spec.writes:
        return None
    model: Any = writer(lm.stored)
    first: Sequence[int] = [0]
    if pictures is not None:
        read = reads_pictures(lm.stored)
        assert read is not None
        model = PictureWriter(model, pictures)
        first = pictures.row(torch.zeros(read.shape, dtype=lm.model.dtype, device=lm.device))
    engine = Engine(
        model,
        lm.tokenizer,
        lm.context,
        most_rows=settings.most_rows,
        most_tokens=settings.most_tokens,
        kept_tokens=settings.kept_tokens,
        device=lm.device,
        deterministic=settings.deterministic,
        adapters=adapters,
    )
    _write_once(engine, first)
    return engine


def _write_once(engine: Engine, prompt: Sequence[int]) -> None:
    """Write two tokens for nobody: what is loaded with the first ones keeps no client waiting."""
    few = Limits(2, engine.context)
    if min(engine.context, engine.most_tokens) > few.max_new_tokens:
        engine.add(Request(prompt, few))
        while engine.advance():
            pass


def _inspected(request: HttpRequest) -> Served:
    served = _served(request)
    served.check_inspection()
    return served


def _served(request: HttpRequest) -> Served:
    served = request.app.state.served
    assert isinstance(served, Served)
    return served


Serving = Annotated[Served, Depends(_served)]
"""What a route asks for."""

Inspecting = Annotated[Served, Depends(_inspected)]
"""What a route asks for that shows the inside of the model."""
