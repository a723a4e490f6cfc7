"""``GET /`` and ``/static``: the page that shows the inside of the model."""

from pathlib import PurePosixPath

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import PlainTextResponse, Response

from orrery.page.assets import KINDS, assets
from orrery.page.page import served_page
from orrery.serving.body import StrictRoute
from orrery.serving.errors import ApiError
from orrery.serving.served import Serving

router = APIRouter(route_class=StrictRoute, include_in_schema=False)

PAGE, RUNNING = "text/html", "Ollama is running"
YEAR = "public, max-age=31536000, immutable"


@router.head("/", include_in_schema=False)
@router.get("/")
async def index(served: Serving, http: HttpRequest) -> Response:
    """Return the page; it holds nothing of the model, which it asks for with the reader's key.

    Ollama's clients ask here whether something answers, and some compare the words. They ask for no page.
    """
    accepted = http.headers.get("accept", PAGE)
    if http.method == "HEAD" or PAGE not in accepted:
        return PlainTextResponse(RUNNING)
    served.check_inspection()
    page, policy = served_page()
    return Response(page, media_type=PAGE, headers={"Content-Security-Policy": policy})


@router.get("/static/{path:path}")
async def static(path: str) -> Response:
    """Return a file of the page; its address names its bytes, so that a browser keeps it."""
    if path not in assets():
        raise ApiError(404, f"the page has no file {path[:100]!r}")
    kind = KINDS[PurePosixPath(path).suffix]
    return Response(assets()[path], media_type=kind, headers={"Cache-Control": YEAR})
