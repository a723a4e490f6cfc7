"""The failures of Ollama's interface, whose object holds a text."""

from typing import Any

from pydantic import BaseModel

from orrery.serving.schema import errors


class OllamaFailure(BaseModel):
    """The body of every response that is no success.

    Attributes:
        error: what is wrong and what to do.
    """

    error: str


FAILURES: dict[int | str, dict[str, Any]] = {
    status: {**about, "model": OllamaFailure} for status, about in errors.FAILURES.items()
}
"""The failures of a route, for its documentation."""
