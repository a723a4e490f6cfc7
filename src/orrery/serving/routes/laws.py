"""``/inspect/laws``: what is known of the laws, and a run of them in the background."""

from typing import Any, Literal

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict
from starlette.responses import Response

from orrery.errors import UsageError
from orrery.laws.registry import families
from orrery.page.views._laws import laws_of, matrix, read_report
from orrery.page.views._run import run_of
from orrery.serving.body import StrictRoute
from orrery.serving.errors import ApiError, AsciiJson
from orrery.serving.schema.errors import FAILURES
from orrery.serving.served import Inspecting, Served

router = APIRouter(prefix="/inspect", route_class=StrictRoute, tags=["inspect"], responses=FAILURES)


class Wanted(BaseModel):
    """What is to be checked.

    Attributes:
        of: ``model``: the laws of the family of the model; ``default``: all families; ``nothing`` ends a run.
    """

    model_config = ConfigDict(extra="forbid")

    of: Literal["model", "default", "nothing"] = "model"


@router.get("/laws")
async def known(served: Inspecting, version: str = "") -> Response:
    """Return the evidence, from the last run here or from a file, and how far a run under way is.

    It is left out where ``version`` says that the reader has it already.
    """
    return AsciiJson(await served.do(_told, served, version))


@router.post("/laws")
async def run(request: Wanted, served: Inspecting) -> Response:
    """Begin to check the laws, or end the run that is under way."""
    family = _family(served)
    if request.of == "nothing":
        await served.do(served.laws.stop)
    elif request.of == "model" and family is None:
        raise ApiError(400, "no laws are known for this model's architecture; check the default subset", param="of")
    else:
        try:
            await served.do(served.laws.start, family if request.of == "model" else None)
        except UsageError as error:
            raise ApiError(409, f"{error.message}: {error.hint}", code="laws_running") from None
    return AsciiJson(await served.do(_told, served))


def _told(served: Served, known: str = "") -> dict[str, Any]:
    laws, path = served.laws, laws_of(run_of(served.lm.folder), served.settings.laws)
    facts: dict[str, Any] = {"family": _family(served), "running": laws.said, "failure": laws.failure}
    if laws.report is not None:
        facts |= {"version": f"run {laws.runs}", "source": laws.of or "default"}
        return facts if facts["version"] == known else facts | matrix(laws.report)
    if path is None:
        return facts
    facts |= {"version": f"file {path.stat().st_mtime_ns}", "source": path.name}
    return facts if facts["version"] == known else facts | matrix(read_report(path))


def _family(served: Served) -> str | None:
    return served.lm.family if served.lm.family in families() else None
