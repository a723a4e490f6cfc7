"""``/v1/rerank``: documents in the order in which they fit a query; ``/v1/score``: how well each fits.

It asks no task: a task answers each input by itself, and the place of a document follows from all of its query.
"""

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.models.pair_scores import IDENTITY, SIGMOID
from orrery.serving.abilities import RERANK
from orrery.serving.body import StrictRoute
from orrery.serving.errors import ApiError, AsciiJson
from orrery.serving.pair_scoring import scored_pairs
from orrery.serving.schema.errors import FAILURES
from orrery.serving.schema.inference import AnyRerankRequest, TextsRerankRequest
from orrery.serving.schema.ranking import RankedList, ScoreList, ScoreRequest
from orrery.serving.served import Served, Serving
from orrery.serving.vectors import similar, vectors_of

router = APIRouter(route_class=StrictRoute, tags=["reading"])

SHORTER = "shorten it, or leave truncation at true"


@router.post("/rerank", response_model=RankedList, responses=FAILURES, include_in_schema=False)
@router.post("/v2/rerank", response_model=RankedList, responses=FAILURES, include_in_schema=False)
@router.post(RERANK, response_model=RankedList, responses=FAILURES)
async def rerank(request: AnyRerankRequest, served: Serving, http: HttpRequest) -> Response:
    """Return the documents by their scores, the best first; a model reads the query beside each of them."""
    if isinstance(request, TextsRerankRequest):
        return await ranks(request, served, http)
    served.check_model(request.model)
    texts = request.texts
    scored = await scored_pairs(
        served,
        http.receive,
        [(request.query, text) for text in texts],
        param="documents",
        names=_names(texts),
        shorter=SHORTER,
        truncation=request.truncation,
        prompt=request.prompt_name,
    )
    scores = [float(one.score) for one in scored]
    results: list[dict[str, Any]] = [{"index": n, "relevance_score": scores[n]} for n in _order(scores)]
    if request.return_documents is not False:
        results = [{**one, "document": {"text": texts[one["index"]]}} for one in results]
    return AsciiJson(
        _list(served, "rerank", sum(one.tokens for one in scored), results=results[: request.top_n or None])
    )


async def ranks(request: TextsRerankRequest, served: Served, http: HttpRequest) -> Response:
    """Return the answer of text-embeddings-inference: a list, whose scores went through a sigmoid or nothing."""
    scored = await scored_pairs(
        served,
        http.receive,
        [(request.query, text) for text in request.texts],
        param="texts",
        names=_names(request.texts),
        shorter='shorten it, or send "truncate": true',
        truncation=request.truncate is not False,
        prompt=request.prompt_name,
        activation=IDENTITY if request.raw_scores else SIGMOID,
    )
    scores = [float(one.score) for one in scored]
    order = _order(scores)[: request.top_n or None]
    told = [({"text": text} if request.return_text else {}) for text in request.texts]
    return AsciiJson([{"index": number, "score": scores[number], **told[number]} for number in order])


@router.post("/score", response_model=ScoreList, responses=FAILURES, include_in_schema=False)
@router.post("/v1/score", response_model=ScoreList, responses=FAILURES)
async def score(request: ScoreRequest, served: Serving, http: HttpRequest) -> Response:
    """Return how well each pair of texts fits, as vLLM does: a cross-encoder's score, else the cosine of vectors."""
    served.check_model(request.model)
    first, second = request.both
    if len(first) not in (1, len(second)):
        reason = f"{len(first)} first texts and {len(second)} second ones: send one, or as many as second ones"
        raise ApiError(400, reason, param=request.names[0])
    pairs = list(zip(first * len(second) if len(first) == 1 else first, second, strict=True))
    if RERANK in served.routes:
        scored = await scored_pairs(
            served,
            http.receive,
            pairs,
            param=request.names[1],
            names=_names(second),
            shorter=SHORTER,
            truncation=request.truncation,
        )
        scores, tokens = [float(one.score) for one in scored], sum(one.tokens for one in scored)
    else:
        texts = [*first, *second]
        vectors = await vectors_of(served, http.receive, texts, truncation=request.truncation, param=request.names[1])
        ahead = vectors[: len(first)] * (len(second) if len(first) == 1 else 1)
        scores = [similar(one, other) for one, other in zip(ahead, vectors[len(first) :], strict=True)]
        tokens = sum(one.tokens for one in vectors)
    data = [{"index": number, "object": "score", "score": one} for number, one in enumerate(scores)]
    return AsciiJson(_list(served, "score", tokens, data=data))


def _list(served: Served, kind: str, tokens: int, **told: Any) -> dict[str, Any]:
    return {
        "id": f"{kind}-{uuid4().hex}",
        "object": "list",
        "created": served.created,
        "model": served.name,
        **told,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    }


def _order(scores: Sequence[float]) -> list[int]:
    """Return the numbers of documents, the best first."""
    return sorted(range(len(scores)), key=lambda number: -scores[number])


def _names(texts: Sequence[str]) -> list[str]:
    """Return what errors call documents."""
    return [f"document {number}" for number in range(len(texts))]
