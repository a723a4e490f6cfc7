"""What every answer is headed with."""

import secrets
import time
from typing import Any

import orrery
from orrery.serving.answers import Answers
from orrery.serving.served import Served


def head(prefix: str, kind: str, served: Served, asked: str | None, answers: Answers) -> dict[str, Any]:
    """Return the fields that name a response: its id, kind, time, program, and the model or adapter that was asked.

    The answers are remembered under the id, so that their insides can be looked at afterwards.
    """
    id = f"{prefix}-{secrets.token_hex(12)}"
    served.responses.add(id, answers.given)
    return {
        "id": id,
        "object": kind,
        "created": int(time.time()),
        "model": asked or served.name,
        "system_fingerprint": f"orrery-{orrery.__version__}",
    }
