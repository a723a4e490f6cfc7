"""``/v1/classify``: the labels of each text."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.serving.abilities import CLASSIFY
from orrery.serving.body import StrictRoute
from orrery.serving.errors import ApiError, AsciiJson
from orrery.serving.reading import BATCH, Done, over_rows
from orrery.serving.schema.errors import FAILURES
from orrery.serving.schema.reading import ClassifyRequest, ClassList
from orrery.serving.served import Served, Serving
from orrery.tasks import pipeline

router = APIRouter(route_class=StrictRoute, tags=["reading"])


@router.post(CLASSIFY, response_model=ClassList, responses=FAILURES)
async def classify(asked: ClassifyRequest, served: Serving, http: HttpRequest) -> Response:
    """Return the labels of each text with their probabilities, the most probable first."""
    served.check_model(asked.model)
    served.require(CLASSIFY)
    if asked.multi_label and asked.candidate_labels is None:
        raise ApiError(400, "multi_label counts with candidate_labels alone", param="multi_label")
    work = _classes if asked.candidate_labels is None else _entailed
    found = await over_rows(served, http.receive, lambda done: work(served, asked, done))
    data = [{"index": index, "labels": labels} for index, labels in enumerate(found)]
    return AsciiJson({"object": "list", "data": data, "model": served.name})


def _classes(served: Served, asked: ClassifyRequest, done: Done) -> list[list[dict[str, Any]]]:
    pipe = pipeline("text-classification", served.lm, batch_size=BATCH)
    found: list[list[dict[str, Any]]] = pipe(asked.items, done=done, top_k=asked.top_k, truncation=asked.truncation)
    return found


def _entailed(served: Served, asked: ClassifyRequest, done: Done) -> list[list[dict[str, Any]]]:
    """Return how well each of the labels that were named fits each text."""
    pipe = pipeline("zero-shot-classification", served.lm, batch_size=BATCH)
    settings: dict[str, Any] = {"candidate_labels": asked.candidate_labels, "multi_label": asked.multi_label}
    found = pipe(asked.items, done=done, truncation=asked.truncation, **settings)
    pairs = [zip(one["labels"], one["scores"], strict=True) for one in found]
    return [[{"label": label, "score": score} for label, score in own][: asked.top_k] for own in pairs]
