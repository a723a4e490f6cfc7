"""``GET /health`` and ``/metrics``: whether the server works, and how it does."""

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel
from starlette.responses import PlainTextResponse, Response

import orrery
from orrery.serving.body import StrictRoute
from orrery.serving.errors import ApiError, AsciiJson
from orrery.serving.schema.errors import FAILURES
from orrery.serving.served import Serving

router = APIRouter(route_class=StrictRoute, tags=["operation"])


class Health(BaseModel):
    """All is well."""

    status: Literal["ok", "draining"]


@router.get("/ping", response_model=Health, include_in_schema=False)
@router.get("/health", response_model=Health, responses={503: FAILURES[503]})
async def health(served: Serving) -> Response:
    """Return 200 while requests are answered, and 503 once the engine has failed; needs no key."""
    if served.failed is not None:
        raise ApiError(503, "the engine has failed; the log says why", code="engine_failed")
    return AsciiJson({"status": "draining" if served.draining else "ok"})


@router.get("/version", responses=FAILURES)
async def version() -> Response:
    """Return the version of the program."""
    return AsciiJson({"version": orrery.__version__})


@router.get("/metrics", response_class=PlainTextResponse, responses={401: FAILURES[401], 403: FAILURES[403]})
async def metrics(served: Serving) -> Response:
    """Return the counters, in Prometheus' text format."""
    return Response(served.metrics.text(served.gauges()), media_type="text/plain; version=0.0.4; charset=utf-8")
