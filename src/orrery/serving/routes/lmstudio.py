"""``GET /api/v0/models``: what LM Studio's clients ask first."""

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from orrery.serving import ollama_card
from orrery.serving.body import StrictRoute
from orrery.serving.errors import AsciiJson
from orrery.serving.ollama_requests import called
from orrery.serving.schema.ollama_errors import FAILURES
from orrery.serving.served import Served, Serving

router = APIRouter(route_class=StrictRoute, tags=["lm studio"])


@router.get("/api/v0/models", responses=FAILURES)
async def models(served: Serving) -> Response:
    """List what is served."""
    names = (served.name, *served.adapters)
    return AsciiJson({"object": "list", "data": await served.do(lambda: [_card(served, name) for name in names])})


@router.get("/api/v0/models/{name:path}", responses=FAILURES)
async def model(name: str, served: Serving) -> Response:
    """Tell of one model."""
    return AsciiJson(await served.do(_card, served, called(served, name) or served.name))


def _card(served: Served, name: str) -> dict[str, Any]:
    card = ollama_card.card(served, name)
    details, able = card["details"], card["capabilities"]
    kind = "embeddings" if served.worker is None else "vlm" if served.pictures is not None else "llm"
    return {
        "id": name,
        "object": "model",
        "type": kind,
        "publisher": "orrery",
        "arch": details["family"],
        "compatibility_type": "gguf" if details["format"] == "gguf" else "mlx",  # Zed reads no other word
        "quantization": details["quantization_level"],
        "state": "loaded",
        "max_context_length": served.lm.context,
        "loaded_context_length": served.lm.context,
        "capabilities": [word for own, word in (("tools", "tool_use"), ("vision", "vision")) if own in able],
    }
