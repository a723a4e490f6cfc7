"""``/v1/classify``: the labels of each text."""

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.serving.abilities import CLASSIFY
from orrery.serving.body import StrictRoute
from orrery.serving.schema.errors import FAILURES
from orrery.serving.schema.reading import ClassifyRequest, ClassList
from orrery.serving.served import Serving
from orrery.serving.tasks import answered
from orrery.tasks.classification import Classification
from orrery.tasks.zero_shot_classification import ZeroShotClassification

router = APIRouter(route_class=StrictRoute, tags=["reading"])


@router.post(CLASSIFY, response_model=ClassList, responses=FAILURES)
async def classify(asked: ClassifyRequest, served: Serving, http: HttpRequest) -> Response:
    """Return the labels of each text with their probabilities, the most probable first."""
    task = Classification if asked.candidate_labels is None else ZeroShotClassification
    return await answered(task, asked, served, http, CLASSIFY)
