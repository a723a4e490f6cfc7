"""``/inspect/train`` and ``/inspect/checkpoints``: the run that the model belongs to, while it learns."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from orrery.page.views._run import RunSeen, checkpoints, run_of
from orrery.serving.body import StrictRoute
from orrery.serving.errors import ApiError, AsciiJson, busy
from orrery.serving.following import Following
from orrery.serving.schema.errors import FAILURES
from orrery.serving.served import Inspecting, Served

router = APIRouter(prefix="/inspect", route_class=StrictRoute, tags=["inspect"], responses=FAILURES)

READERS = 16
"""Pages that may follow a run at once."""


@router.get("/train/events")
async def events(served: Inspecting) -> Response:
    """Follow the metrics of the run: first ``{"history": ...}``, then each record, sample and checkpoint."""
    seen, begun = RunSeen(_run(served)), False
    if served.followers >= READERS:
        raise busy(30, f"{READERS} pages follow the run already")
    served.followers += 1

    async def news() -> Sequence[dict[str, Any]]:
        nonlocal begun
        if begun:
            return await served.do(seen.news)
        begun = True
        return [{"history": await served.do(seen.history)}]

    def left() -> None:
        served.followers -= 1

    return Following(news, lambda: served.draining, left)


@router.get("/checkpoints")
async def list_checkpoints(served: Inspecting) -> Response:
    """Return the checkpoints that the run has at this moment; a pass can be opened at each."""
    run = _run(served)
    saved = await served.do(checkpoints, run)
    return AsciiJson({"run": run.name, "served": served.lm.folder.name, "checkpoints": list(map(vars, saved))})


def _run(served: Served) -> Path:
    run = run_of(served.lm.folder)
    if run is None:
        raise ApiError(404, "this model belongs to no run; serve the folder of a run", code="no_run")
    return run
