"""``/v1/tag``: the entities of each text."""

from typing import Any

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.serving.abilities import TAG
from orrery.serving.body import StrictRoute
from orrery.serving.errors import ApiError, AsciiJson
from orrery.serving.reading import BATCH, SHORTER, Done, over_rows, texts_of
from orrery.serving.schema.errors import FAILURES
from orrery.serving.schema.reading import TagList, TagRequest
from orrery.serving.served import Served, Serving
from orrery.tasks import pipeline

router = APIRouter(route_class=StrictRoute, tags=["reading"])


@router.post(TAG, response_model=TagList, responses=FAILURES)
async def tag(asked: TagRequest, served: Serving, http: HttpRequest) -> Response:
    """Return the entities of each text: label, probability, and from which character to which they stand."""
    served.check_model(asked.model)
    served.require(TAG)
    if asked.stride is not None and asked.aggregation_strategy == "none":
        raise ApiError(400, "windows with stride need entities: choose an aggregation_strategy", param="stride")
    found = await over_rows(
        served,
        http.receive,
        lambda done: _entities(served, asked, done),
        shorter=f'{SHORTER}, or "stride": 16, which reads it in windows',
    )
    data = [{"index": index, "entities": entities} for index, entities in enumerate(found)]
    return AsciiJson({"object": "list", "data": data, "model": served.name})


def _entities(served: Served, asked: TagRequest, done: Done) -> list[Any]:
    settings: dict[str, Any] = {
        "aggregation_strategy": asked.aggregation_strategy,
        "ignore_labels": asked.ignore_labels,
        "stride": asked.stride,
        "truncation": asked.truncation,
    }
    pipe = pipeline("token-classification", served.lm, batch_size=BATCH, **settings)
    found = pipe(texts_of(asked.input), done=done)
    return [[{key: _plain(value) for key, value in entity.items()} for entity in entities] for entities in found]


def _plain(value: Any) -> Any:
    """Return a number of numpy as Python's, which JSON knows."""
    return value.item() if hasattr(value, "item") else value
