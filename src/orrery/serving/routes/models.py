"""``GET /v1/models``: what is served."""

from datetime import UTC, datetime
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.serving.abilities import WRITING
from orrery.serving.body import StrictRoute
from orrery.serving.errors import AsciiJson
from orrery.serving.schema.errors import FAILURES
from orrery.serving.served import Served, Serving

VERSION = "anthropic-version"
"""The header that Anthropic's clients send, and no others."""

router = APIRouter(route_class=StrictRoute, tags=["models"])


class ModelCard(BaseModel):
    """One model.

    Attributes:
        id: what clients call it.
        object: its kind.
        created: when serving began.
        owned_by: the program.
        max_model_len: the most tokens of a row, prompt and answer together.
        family: its architecture's name.
        routes: those that it can answer.
        parent: the model that an adapter stands over.
    """

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    max_model_len: int
    family: str | None
    routes: list[str]
    parent: str | None


class ModelList(BaseModel):
    """All of them: the model and its adapters."""

    object: Literal["list"]
    data: list[ModelCard]


@router.get("/openai/v1/models", include_in_schema=False)  # where Groq's client asks
@router.get("/v1/models", response_model=ModelList, responses=FAILURES)
async def models(served: Serving, http: HttpRequest) -> Response:
    """List what is served, as OpenAI does or Anthropic."""
    names = (served.name, *served.adapters)
    cards = [_card(served, name, http) for name in names]
    if VERSION in http.headers:
        return AsciiJson({"data": cards, "has_more": False, "first_id": names[0], "last_id": names[-1]})
    return AsciiJson({"object": "list", "data": cards})


@router.get("/openai/v1/models/{name:path}", include_in_schema=False)
@router.get("/v1/models/{name:path}", response_model=ModelCard, responses=FAILURES)
async def model(name: str, served: Serving, http: HttpRequest) -> Response:
    """Tell of one model."""
    if not name:  # with a slash at the end, which is no other URL's
        raise HTTPException(404)
    served.adapter_of(name)
    return AsciiJson(_card(served, name, http))


def _card(served: Served, name: str, http: HttpRequest) -> dict[str, Any]:
    if VERSION in http.headers:
        created = datetime.fromtimestamp(served.created, UTC).isoformat().replace("+00:00", "Z")
        told = {"type": "model", "id": name, "display_name": name, "created_at": created, "lifecycle": "active"}
        unknown = dict.fromkeys(("capabilities", "line", "deprecated_at", "retires_at"))
        return {**told, **unknown, **dict.fromkeys(("max_input_tokens", "max_tokens"), served.lm.context)}
    adapter = name != served.name
    return {
        "id": name,
        "object": "model",
        "created": served.created,
        "owned_by": "orrery",
        "max_model_len": served.lm.context,
        "family": served.lm.family,
        "routes": [path for path in served.routes if path in WRITING or not adapter],
        "parent": served.name if adapter else None,
    }
