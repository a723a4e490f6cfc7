"""``GET /`` and ``/static``: the page that shows the inside of the model."""

from pathlib import PurePosixPath

from fastapi import APIRouter
from starlette.responses import Response

from orrery.pages.assets import KINDS, assets
from orrery.pages.page import served_page
from orrery.serving.body import StrictRoute
from orrery.serving.errors import ApiError
from orrery.serving.served import Inspecting

router = APIRouter(route_class=StrictRoute, include_in_schema=False)

YEAR = "public, max-age=31536000, immutable"


@router.get("/")
async def index(served: Inspecting) -> Response:
    """Return the page; it holds nothing of the model, which it asks for with the reader's key."""
    page, policy = served_page()
    return Response(page, media_type="text/html", headers={"Content-Security-Policy": policy})


@router.get("/static/{path:path}")
async def static(path: str) -> Response:
    """Return a file of the page; its address names its bytes, so that a browser keeps it."""
    if path not in assets():
        raise ApiError(404, f"the page has no file {path[:100]!r}")
    kind = KINDS[PurePosixPath(path).suffix]
    return Response(assets()[path], media_type=kind, headers={"Cache-Control": YEAR})
