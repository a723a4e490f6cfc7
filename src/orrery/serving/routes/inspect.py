"""``/inspect``: a pass over a text, and what views show of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, model_validator
from starlette.requests import Request
from starlette.responses import Response

from orrery.errors import UsageError
from orrery.inspection.interventions.interventions import MOST
from orrery.inspection.memory import readable
from orrery.page.page import SCREENS
from orrery.page.replay import replay_check
from orrery.page.views._inside import Inside, memory_of
from orrery.page.views._payload import Payload
from orrery.page.views._view import ViewSubject
from orrery.page.views.tokens import session as session_of
from orrery.serving.abilities import COMPLETIONS
from orrery.serving.body import StrictRoute
from orrery.serving.errors import AsciiJson
from orrery.serving.schema.errors import FAILURES
from orrery.serving.served import Inspecting, Served

router = APIRouter(prefix="/inspect", route_class=StrictRoute, tags=["inspect"], responses=FAILURES)

KIND = "application/octet-stream"
MOST_PLACES, MOST_NUMBERS = 2_048, 65_536
"""Places, and numbers of vectors, in the edits of one pass: each is looked at for every tensor that it reaches."""


class PassInput(BaseModel):
    """What a pass reads: a text, ids, a conversation, an image, a source and what was written, or a served answer.

    Attributes:
        text: a text.
        ids: tokens.
        messages: a conversation, in the model's template.
        source: what an encoder-decoder reads, as text or as tokens.
        image: what a model of images reads: a PNG file as ``data:image/png;base64,...``, or the name of an image that
            the server was started with.
        target: what an encoder-decoder has written so far, likewise.
        response: the id of a response; its prompt and answer are read.
        choice: which of its answers.
        checkpoint: the step of the run at which the model is taken; by default the model that is served.
        edits: interventions in the pass, such as ``{"at": "blocks.0.attention.mixed", "op": "zero", "head": 1}``, see
            ``orrery.inspection.interventions``; ``from`` is the id of an open pass, ``from_position`` a place in it.
    """

    model_config = ConfigDict(extra="forbid")

    text: str | None = None
    ids: list[int] | None = Field(default=None, min_length=1)
    messages: list[dict[str, Any]] | None = Field(default=None, min_length=1)
    source: str | list[int] | None = None
    image: str | None = None
    target: str | list[int] | None = None
    response: str | None = None
    choice: int = Field(default=0, ge=0)
    checkpoint: int | None = Field(default=None, ge=0)
    edits: list[dict[str, Any]] = Field(default_factory=list, max_length=MOST)

    @model_validator(mode="after")
    def _one(self) -> "PassInput":
        names = ("text", "ids", "messages", "source", "image", "response")
        given = [name for name in names if getattr(self, name) is not None]
        if len(given) != 1 or (self.target is not None and given[0] not in ("source", "image")):
            raise ValueError(f"give one of {', '.join(names)}; target belongs to source and image")
        if self.response is not None and self.checkpoint is not None:
            raise ValueError("an answer was written by the model that is served, by no checkpoint; leave one away")
        for what, is_vector, most in (("places", False, MOST_PLACES), ("numbers", True, MOST_NUMBERS)):
            count = sum(
                len(value)
                for edit in self.edits
                for name, value in edit.items()
                if isinstance(value, list) and (name == "vector") == is_vector
            )
            if count > most:
                raise ValueError(f"the edits name {count:,} {what}, and at most {most:,} are taken")
        return self


@router.get("/session")
async def session(served: Inspecting) -> Response:
    """Return what is known of the model, and which screens and views there are."""
    facts = session_of(ViewSubject(served.lm, laws=served.settings.laws))
    spec = served.lm.model.spec
    reads = {"reads_source": spec.reads_source, "reads_pair": spec.reads_pair, "reads_image": spec.vocabulary is None}
    return AsciiJson({**facts, **reads, "routes": served.routes, "screens": _screens(facts, served.routes)})


@router.post("/traces")
async def open_trace(request: PassInput, served: Inspecting) -> Response:
    """Run the model over a text and keep what is inside for a while; the same text has the same id."""
    inside = await served.look(_opened, served, request)
    return AsciiJson({"id": inside.id})


@router.post("/cost")
async def cost(request: PassInput, served: Inspecting) -> Response:
    """Return the bytes that a pass over this will need, before it runs; one that needs too much is refused."""
    given = request.model_dump(exclude_none=True, exclude={"choice", "edits", "checkpoint"})
    if request.response is not None or "image" in given:
        raise UsageError("this is known of a text alone", "give text, ids, messages, or source and target")
    memory = await served.look(memory_of, served.lm, given)
    return AsciiJson({"bytes": memory.total, "said": readable(memory.total)})


@router.get("/traces/{id}/page.html")
async def saved_page(id: str, served: Inspecting) -> Response:
    """Return a pass as one HTML file that needs nothing but a browser."""
    content = await served.look(served.passes.save, id)
    return Response(content, media_type=KIND, headers={"Content-Disposition": 'attachment; filename="inside.html"'})


@router.get("/traces/{id}/{view}")
async def show_pass(id: str, view: str, served: Inspecting, http: Request) -> Response:
    """Return what a view shows of a pass, as a safetensors file; the query holds the settings of the view."""
    return _file(await served.look(served.passes.show, id, view, _asked(http)))


@router.get("/model/{view}")
async def show_model(view: str, served: Inspecting, http: Request) -> Response:
    """Return what a view shows of the model alone."""
    return _file(await served.look(served.passes.show_model, view, _asked(http)), "no-store")


def _opened(served: Served, request: PassInput) -> Inside:
    given: dict[str, Any]
    if request.response is None:
        given = request.model_dump(exclude_none=True, exclude={"choice", "edits", "checkpoint"})
        return served.passes.open(given, request.edits, checkpoint=request.checkpoint)
    answer = served.responses.find(request.response, request.choice)
    given = {"ids": [*answer.prompt, *answer.written]}
    if answer.picture:
        given = {"image": answer.picture, "target": [*_begun(served), *answer.written]}
    elif served.lm.model.spec.reads_source:
        given = {"source": list(answer.prompt), "target": [*_begun(served), *answer.written]}
    scores = answer.log_probabilities
    check = None if request.edits else lambda inside: replay_check(inside, answer.written, scores)
    return served.passes.open(given, request.edits, check)


def _begun(served: Served) -> list[int]:
    first = served.lm.model.first_token
    return [] if first is None else [first]


def _asked(http: Request) -> Mapping[str, Any]:
    return dict(http.query_params)


def _file(payload: Payload, cache: str = "private, max-age=3600") -> Response:
    """Return the file of a payload; that of a pass, whose address names it, may be kept by the browser."""
    return Response(payload.to_bytes(), media_type=KIND, headers={"Cache-Control": cache})


def _screens(facts: Mapping[str, Any], routes: Sequence[str]) -> list[str]:
    names_shown = {view["screen"] for view in facts["views"]} | {"inside", "trust"}
    if COMPLETIONS in routes:
        names_shown |= {"chat", "decode"}
    return [name for name in SCREENS if name in names_shown]
