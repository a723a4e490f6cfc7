"""``/v1/tag``: the entities of each text."""

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.serving.abilities import TAG
from orrery.serving.body import StrictRoute
from orrery.serving.reading import SHORTER
from orrery.serving.schema.errors import FAILURES
from orrery.serving.schema.reading import TagList, TagRequest
from orrery.serving.served import Serving
from orrery.serving.tasks import answered
from orrery.tasks.tagging import Tagging

router = APIRouter(route_class=StrictRoute, tags=["reading"])


@router.post(TAG, response_model=TagList, responses=FAILURES)
async def tag(asked: TagRequest, served: Serving, http: HttpRequest) -> Response:
    """Return the entities of each text: label, probability, and from which character to which they stand."""
    shorter = f'{SHORTER}, or "stride": 16, which reads it in windows'
    return await answered(Tagging, asked, served, http, shorter=shorter)
