"""``/v1/embeddings``: a vector of length 1 for each text."""

import base64
from uuid import uuid4

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.language_model.vectors import TextVector
from orrery.serving.abilities import EMBEDDINGS
from orrery.serving.body import StrictRoute
from orrery.serving.errors import AsciiJson
from orrery.serving.schema.errors import FAILURES
from orrery.serving.schema.reading import EmbeddingList, EmbeddingsRequest, items_of
from orrery.serving.served import Serving
from orrery.serving.vectors import vectors_of

router = APIRouter(route_class=StrictRoute, tags=["reading"])


@router.post("/openai/v1/embeddings", include_in_schema=False)  # where Groq's client asks
@router.post("/api/v0/embeddings", include_in_schema=False)  # where LM Studio's clients ask
@router.post(EMBEDDINGS, response_model=EmbeddingList, responses=FAILURES)
async def embeddings(request: EmbeddingsRequest, served: Serving, http: HttpRequest) -> Response:
    """Return the vector of each text: as a folder of sentence-transformers says, else its mean, of length 1."""
    served.check_model(request.model)
    vectors = await vectors_of(
        served,
        http.receive,
        items_of(request.input),
        truncation=request.truncation,
        dimensions=request.dimensions,
        prompt=request.prompt_name,
    )
    tokens = sum(one.tokens for one in vectors)
    coded = [_coded(one, request.encoding_format) for one in vectors]
    answer = {
        "id": f"embd-{uuid4().hex}",  # which Mistral's client misses
        "object": "list",
        "data": [{"object": "embedding", "index": index, "embedding": one} for index, one in enumerate(coded)],
        "model": served.name,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
    return AsciiJson(answer)


def _coded(one: TextVector, form: str) -> list[float] | str:
    """Return a vector as numbers, or as the little-endian float32 that OpenAI's clients ask for."""
    if form == "float":
        return one.vector.tolist()
    return base64.b64encode(one.vector.numpy().astype("<f4").tobytes()).decode()
