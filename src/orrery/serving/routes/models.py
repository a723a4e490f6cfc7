"""``GET /v1/models``: what is served."""

from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import Response

from orrery.serving.abilities import WRITING
from orrery.serving.body import StrictRoute
from orrery.serving.errors import AsciiJson
from orrery.serving.schema.errors import FAILURES
from orrery.serving.served import Served, Serving

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
async def models(served: Serving) -> Response:
    """List what is served."""
    return AsciiJson({"object": "list", "data": [_card(served, name) for name in (served.name, *served.adapters)]})


@router.get("/v1/models/{name:path}", response_model=ModelCard, responses=FAILURES)
async def model(name: str, served: Serving) -> Response:
    """Tell of one model."""
    served.adapter_of(name)
    return AsciiJson(_card(served, name))


def _card(served: Served, name: str) -> dict[str, Any]:
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
