"""What every answer is headed with."""

import time
from typing import Any

import orrery
from orrery.serving.answers import Answers
from orrery.serving.served import Served


def head(prefix: str, kind: str, served: Served, model: str | None, answers: Answers) -> dict[str, Any]:
    """Return the fields that name a response: its id, kind, time, program, and the model or adapter that was asked."""
    return {
        "id": f"{prefix}-{answers.id}",
        "object": kind,
        "created": int(time.time()),
        "model": model or served.name,
        "system_fingerprint": f"orrery-{orrery.__version__}",
    }
