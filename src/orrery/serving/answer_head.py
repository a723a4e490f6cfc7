"""What every answer is headed with."""

import secrets
import time
from typing import Any

import orrery
from orrery.serving.served import Served


def head(prefix: str, kind: str, served: Served, asked: str | None) -> dict[str, Any]:
    """Return the fields that name an answer: its id, kind, time, program, and the model or adapter that was asked."""
    return {
        "id": f"{prefix}-{secrets.token_hex(12)}",
        "object": kind,
        "created": int(time.time()),
        "model": asked or served.name,
        "system_fingerprint": f"orrery-{orrery.__version__}",
    }
