"""What clients of text-embeddings-inference and of Hugging Face's inference ask: ``/embed``, ``/predict``, ``/``."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

import orrery
from orrery.serving.abilities import CHAT, CLASSIFY, COMPLETIONS, RERANK, TRANSLATE
from orrery.serving.body import StrictRoute, checked
from orrery.serving.errors import ApiError, AsciiJson
from orrery.serving.reading import over_rows
from orrery.serving.routes.rerank import ranks
from orrery.serving.schema.errors import TEXT_FAILURES
from orrery.serving.schema.inference import (
    EmbedRequest,
    Predicted,
    PredictRequest,
    SimilarityRequest,
    TextsRerankRequest,
)
from orrery.serving.schema.reading import MOST_INPUTS, TextPair, items_of
from orrery.serving.served import Served, Serving
from orrery.serving.tasks import pipelined
from orrery.serving.vectors import similar, vectors_of
from orrery.tasks.classification import Classification

router = APIRouter(route_class=StrictRoute, tags=["text-embeddings-inference"])

SHORTER = 'shorten it, or send "truncate": true, which leaves out its end'


@router.post("/embed", response_model=list[list[float]], responses=TEXT_FAILURES)
async def embed(request: EmbedRequest, served: Serving, http: HttpRequest) -> Response:
    """Return the vector of each input."""
    vectors = await vectors_of(
        served,
        http.receive,
        items_of(request.inputs),
        truncation=request.truncate,
        dimensions=request.dimensions,
        prompt=request.prompt_name,
        normalise=request.normalize,
        param="inputs",
        shorter=SHORTER,
    )
    return AsciiJson([one.vector.tolist() for one in vectors])


@router.post("/similarity", response_model=list[float], responses=TEXT_FAILURES)
async def similarity(request: SimilarityRequest, served: Serving, http: HttpRequest) -> Response:
    """Return how near the vector of each sentence is to that of the first, as their cosine."""
    texts = [request.inputs.source_sentence, *request.inputs.sentences]
    own = checked(EmbedRequest, {**(request.parameters or {}), "inputs": texts[:1]})
    first, *others = await vectors_of(
        served,
        http.receive,
        texts,
        truncation=own.truncate,
        prompt=own.prompt_name,
        param="inputs",
        shorter=SHORTER,
    )
    return AsciiJson([similar(first, one) for one in others])


@router.post("/predict", response_model=list[Predicted] | list[list[Predicted]], responses=TEXT_FAILURES)
async def predict(request: PredictRequest, served: Serving, http: HttpRequest) -> Response:
    """Return the labels of a text or of two, the most probable first; a list of them for a list of lists."""
    labels = await _labels(request, served, http)
    return AsciiJson(labels if request.several else labels[0])


@router.post("/", include_in_schema=False)
async def by_model(request: dict[str, Any], served: Serving, http: HttpRequest) -> Response:
    """Return what the model is for: an order of texts, labels, or vectors; Hugging Face's clients name no more."""
    if "query" in request:
        return await ranks(checked(TextsRerankRequest, request), served, http)
    if isinstance(request.get("inputs"), Mapping):
        return await similarity(checked(SimilarityRequest, request), served, http)
    if CLASSIFY in served.routes:
        asked = checked(PredictRequest, request)
        labels = await _labels(asked, served, http)
        return AsciiJson(labels if asked.several or asked.parameters is not None else labels[0])
    if COMPLETIONS in served.routes and ("parameters" in request or "stream" in request):
        paths = " and ".join(f"POST {path}" for path in (TRANSLATE, COMPLETIONS, CHAT) if path in served.routes)
        raise ApiError(400, f"text is written by {paths}", param="parameters")
    return await embed(checked(EmbedRequest, request), served, http)


@router.get("/info", responses=TEXT_FAILURES)
async def info(served: Serving) -> Response:
    """Return what the model is, and how much it takes."""
    kinds = {RERANK: "reranker", CLASSIFY: "classifier"}
    kind = next((kind for path, kind in kinds.items() if path in served.routes), "embedding")
    return AsciiJson({
        "model_id": served.name,
        "model_sha": None,
        "model_dtype": str(served.lm.model.dtype).removeprefix("torch."),
        "model_type": {kind: {}},
        "max_input_length": served.lm.context,
        "max_concurrent_requests": served.settings.most_rows + served.settings.queue,
        "max_client_batch_size": MOST_INPUTS,
        "version": orrery.__version__,
    })  # fmt: skip


async def _labels(request: PredictRequest, served: Served, http: HttpRequest) -> list[Any]:
    served.require(CLASSIFY)
    own = request.parameters or {}
    if unknown := own.keys() - Classification.Settings.model_fields:
        reason = f"it is no setting of labels; these are: {', '.join(Classification.Settings.model_fields)}"
        raise ApiError(400, reason, param=f"parameters.{min(unknown)[:40]}", code="unsupported_parameter")
    settings = {"top_k": None, "truncation": bool(request.truncate), **own}
    if request.raw_scores:
        settings["function_to_apply"] = "none"
    items = [one.model_dump() if isinstance(one, TextPair) else one for one in request.items]
    work = pipelined(served, Classification, items, settings)
    return await over_rows(served, http.receive, work, param="inputs", shorter=SHORTER)
