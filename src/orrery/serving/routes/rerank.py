"""``/v1/rerank``: documents in the order in which they fit a query.

It asks no task: a task answers each input by itself, and the place of a document follows from all of its query.
"""

from typing import Any
from uuid import uuid4

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.serving.abilities import RERANK
from orrery.serving.body import StrictRoute
from orrery.serving.errors import AsciiJson
from orrery.serving.reading import BATCH, over_rows
from orrery.serving.schema.errors import FAILURES
from orrery.serving.schema.ranking import RankedList, RerankRequest
from orrery.serving.served import Serving

router = APIRouter(route_class=StrictRoute, tags=["reading"])


@router.post("/rerank", response_model=RankedList, responses=FAILURES, include_in_schema=False)
@router.post("/v2/rerank", response_model=RankedList, responses=FAILURES, include_in_schema=False)
@router.post(RERANK, response_model=RankedList, responses=FAILURES)
async def rerank(request: RerankRequest, served: Serving, http: HttpRequest) -> Response:
    """Return the documents by their scores, the best first; a model reads the query beside each of them."""
    served.check_model(request.model)
    served.require(RERANK)
    texts = request.texts
    scored = await over_rows(
        served,
        http.receive,
        lambda done: served.lm.pair_scores(
            [(request.query, text) for text in texts],
            prompt=request.prompt_name,
            truncation=request.truncation,
            batch_size=BATCH,
            names=[f"document {number}" for number in range(len(texts))],
            done=done,
        ),
        param="documents",
        shorter="shorten it, or leave truncation at true",
    )
    scores = [float(one.score) for one in scored]
    order = sorted(range(len(scores)), key=lambda number: -scores[number])
    results: list[dict[str, Any]] = [{"index": number, "relevance_score": scores[number]} for number in order]
    if request.return_documents is not False:
        results = [{**one, "document": {"text": texts[one["index"]]}} for one in results]
    tokens = sum(one.tokens for one in scored)
    answer = {
        "id": f"rerank-{uuid4().hex}",
        "object": "list",
        "model": served.name,
        "results": results[: request.top_n or None],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }
    return AsciiJson(answer)
