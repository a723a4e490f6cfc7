"""``/v1/classify`` and ``/v1/tag``: the labels of each text, and the entities in it."""

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.serving.abilities import CLASSIFY, TAG
from orrery.serving.body import StrictRoute
from orrery.serving.reading import SHORTER
from orrery.serving.schema.errors import FAILURES
from orrery.serving.schema.reading import ClassifyRequest, ClassList, TagList, TagRequest
from orrery.serving.served import Serving
from orrery.serving.tasks import answered
from orrery.tasks.classification import Classification
from orrery.tasks.tagging import Tagging
from orrery.tasks.zero_shot_classification import ZeroShotClassification

router = APIRouter(route_class=StrictRoute, tags=["reading"])


@router.post(CLASSIFY, response_model=ClassList, responses=FAILURES)
async def classify(request: ClassifyRequest, served: Serving, http: HttpRequest) -> Response:
    """Return the labels of each text with their probabilities, the most probable first."""
    task = Classification if request.candidate_labels is None else ZeroShotClassification
    return await answered(task, request, served, http, CLASSIFY)


@router.post(TAG, response_model=TagList, responses=FAILURES)
async def tag(request: TagRequest, served: Serving, http: HttpRequest) -> Response:
    """Return the entities of each text: label, probability, and from which character to which they stand."""
    shorter = f'{SHORTER}, or "stride": 16, which reads it in windows'
    return await answered(Tagging, request, served, http, shorter=shorter)
