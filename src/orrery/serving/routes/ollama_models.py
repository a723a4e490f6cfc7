"""What Ollama's clients ask first: the version, and which models there are."""

from fastapi import APIRouter
from starlette.responses import Response

import orrery
from orrery.serving import ollama_card
from orrery.serving.body import StrictRoute
from orrery.serving.errors import ApiError, AsciiJson
from orrery.serving.ollama_requests import called
from orrery.serving.schema.ollama import ShowRequest
from orrery.serving.schema.ollama_errors import FAILURES
from orrery.serving.served import Serving

router = APIRouter(route_class=StrictRoute, tags=["ollama"])


@router.head("/api/version", include_in_schema=False)
@router.get("/api/version", responses=FAILURES)
async def version() -> Response:
    """Return the version of the interface, and the program that answers."""
    return AsciiJson({"version": ollama_card.VERSION, "server": f"orrery-{orrery.__version__}"})


@router.head("/api/tags", include_in_schema=False)
@router.get("/api/tags", responses=FAILURES)
async def tags(served: Serving) -> Response:
    """List the model and its adapters."""
    names = (served.name, *served.adapters)
    return AsciiJson({"models": await served.do(lambda: [ollama_card.card(served, name) for name in names])})


@router.get("/api/ps", responses=FAILURES)
async def ps(served: Serving) -> Response:
    """List what is in memory, which is the same."""
    names = (served.name, *served.adapters)
    return AsciiJson({"models": await served.do(lambda: [ollama_card.running(served, name) for name in names])})


@router.post("/api/show", responses=FAILURES)
async def show(request: ShowRequest, served: Serving) -> Response:
    """Tell of one model."""
    name = called(served, request.model or request.name) or served.name
    return AsciiJson(await served.do(ollama_card.described, served, name))


@router.post("/api/pull", responses=FAILURES)
async def pull(request: ShowRequest, served: Serving) -> Response:
    """Say that the model is here; another is not fetched."""
    called(served, request.model or request.name)
    return AsciiJson({"status": "success"})


@router.post("/api/create", include_in_schema=False)
@router.post("/api/copy", include_in_schema=False)
@router.post("/api/push", include_in_schema=False)
@router.delete("/api/delete", include_in_schema=False)
async def change() -> Response:
    """Refuse to change which models there are."""
    raise ApiError(400, "this server has the model that it was started with; orrery serve starts one for another")
