"""The object of every failure, and the statuses that it comes with."""

from typing import Any

from pydantic import BaseModel


class Failure(BaseModel):
    """What is wrong with a request.

    Attributes:
        message: what is wrong and what to do.
        type: the kind of failure.
        param: the field of the request that is wrong.
        code: what programs look at.
    """

    message: str
    type: str
    param: str | None
    code: str | None


class FailureBody(BaseModel):
    """The body of every response that is no success."""

    error: Failure


_WHAT = {
    400: "The request is wrong, or cannot be answered by this model.",
    401: "The key is missing or wrong.",
    403: "The Host or the Origin is not let in.",
    404: "There is no such URL or no such model.",
    405: "The URL does not take that method.",
    408: "The body did not come in time.",
    413: "The body is too large.",
    415: "The body is not sent as JSON.",
    429: "Too many requests wait; Retry-After says for how long.",
    500: "The server failed on this request.",
    503: "The server stops, or its engine has failed.",
}
FAILURES: dict[int | str, dict[str, Any]] = {
    status: {"model": FailureBody, "description": what} for status, what in _WHAT.items()
}
"""The failures of a route, for its documentation."""


class TextFailure(BaseModel):
    """The body of a failure of text-embeddings-inference.

    Attributes:
        error: what is wrong and what to do.
        error_type: the kind of failure.
    """

    error: str
    error_type: str


TEXT_FAILURES: dict[int | str, dict[str, Any]] = {
    status: {**about, "model": TextFailure} for status, about in FAILURES.items()
}
"""The failures of its routes, for their documentation."""


class MessageFault(BaseModel):
    """What is wrong with a request of Anthropic's interface: the kind, and what to do."""

    type: str
    message: str


class MessageFailure(BaseModel):
    """The body of a failure of Anthropic's interface."""

    type: str
    error: MessageFault


MESSAGE_FAILURES: dict[int | str, dict[str, Any]] = {
    status: {**about, "model": MessageFailure} for status, about in FAILURES.items()
}
"""The failures of its routes, for their documentation."""
