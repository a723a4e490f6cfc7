"""What every answer is headed with."""

import secrets
import time
from typing import Any

import orrery
from orrery.serving.served import Served


def head(prefix: str, kind: str, served: Served) -> dict[str, Any]:
    """Return the fields that name an answer: its id, kind, time, model and program."""
    return {
        "id": f"{prefix}-{secrets.token_hex(12)}",
        "object": kind,
        "created": int(time.time()),
        "model": served.name,
        "system_fingerprint": f"orrery-{orrery.__version__}",
    }
