"""``POST /api/embed`` and ``/api/embeddings``: vectors of texts, as Ollama's clients ask for them."""

import time

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.serving.body import StrictRoute
from orrery.serving.errors import AsciiJson
from orrery.serving.ollama_requests import called
from orrery.serving.schema.ollama import EmbedRequest, OllamaEmbeddingsRequest
from orrery.serving.schema.ollama_errors import FAILURES
from orrery.serving.served import Serving
from orrery.serving.vectors import vectors_of

router = APIRouter(route_class=StrictRoute, tags=["ollama"])

SHORTER = 'shorten it, or leave "truncate" out, so that its end is cut'


@router.post("/api/embed", responses=FAILURES)
async def embed(request: EmbedRequest, served: Serving, http: HttpRequest) -> Response:
    """Return the vector of each text; ends that do not fit are cut unless ``truncate`` is false."""
    served.check_model(called(served, request.model))
    began, texts = time.perf_counter(), [request.input] if isinstance(request.input, str) else request.input
    texts = [text for text in texts if text]
    vectors = []
    if texts:
        vectors = await vectors_of(
            served,
            http.receive,
            texts,
            truncation=request.truncate is not False,
            dimensions=request.dimensions or None,
            shorter=SHORTER,
        )
    answer = {
        "model": request.model or served.name,
        "embeddings": [one.vector.tolist() for one in vectors],
        "total_duration": int((time.perf_counter() - began) * 1e9),
        "load_duration": 0,
        "prompt_eval_count": sum(one.tokens for one in vectors),
    }
    return AsciiJson(answer)


@router.post("/api/embeddings", responses=FAILURES)
async def embeddings(request: OllamaEmbeddingsRequest, served: Serving, http: HttpRequest) -> Response:
    """Return the vector of one text."""
    served.check_model(called(served, request.model))
    if not request.prompt:
        return AsciiJson({"embedding": []})
    vectors = await vectors_of(served, http.receive, [request.prompt], truncation=True, param="prompt", shorter=SHORTER)
    return AsciiJson({"embedding": vectors[0].vector.tolist()})
