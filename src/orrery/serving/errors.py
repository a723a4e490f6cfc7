"""Every failure as the one object that OpenAI's clients read: ``{"error": {message, type, param, code}}``."""

import asyncio
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from orrery.errors import DataError, ModelFileError, OrreryError, UsageError
from orrery.serving.elsewhere import no_such_url
from orrery.serving.schema.other_names import sent_as
from orrery.serving.worker import BusyError, ClosedError

LOG = logging.getLogger("orrery.serving")
ENDINGS = (asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit)
"""What ends a task or the program, and is no failure of a request."""
OLLAMA = "/api/"
"""What the paths of Ollama's interface begin with; its clients read an error as a text."""
MESSAGES = "/v1/messages"
"""What those of Anthropic's interface begin with."""
OF_TEXTS = ("/embed", "/predict", "/similarity", "/info")
"""The paths of text-embeddings-inference."""
LONGEST = 500
"""Characters of a message: what a client sent is not sent back whole."""

_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES = {
    400: "invalid_request", 401: "invalid_api_key", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
    408: "request_timeout", 413: "request_too_large", 415: "unsupported_media_type", 429: "server_busy",
    431: "headers_too_large", 500: "internal_error", 503: "unavailable",
}  # fmt: skip
_OF_MESSAGES = {
    401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
    429: "rate_limit_error", 503: "overloaded_error",
}  # fmt: skip
"""Anthropic's names of failures."""
NO_THREADS = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
"""By this Anthropic's package knows that it has to send whole conversations, and asks again."""
_OF_TEXTS = {429: "Overloaded", 500: "Backend", 503: "Unhealthy"}
"""Those of text-embeddings-inference."""


class ApiError(HTTPException):
    """A request that is answered with an error.

    Args:
        status: of the response, 400 to 599.
        message: what is wrong and what to do.
        param: the field of the request that is wrong, such as ``messages[0].content``.
        code: what programs look at; by default one for the status.
        headers: of the response.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, dict(headers or {}))
        self.param, self.code = param, code or _CODES.get(status, "error")

    @property
    def text(self) -> str:
        """What is wrong, at a bounded length."""
        return self.detail if len(self.detail) <= LONGEST else f"{self.detail[:LONGEST]} ..."

    @property
    def body(self) -> dict[str, Any]:
        """The object that is sent."""
        kind = _TYPES.get(self.status_code) or ("server_error" if self.status_code >= 500 else "invalid_request_error")
        return {"error": {"message": self.text, "type": kind, "param": self.param, "code": self.code}}

    def response(self, path: str) -> Response:
        """Return what is sent to who asked for a path; ASCII alone, whatever characters the message holds."""
        return AsciiJson(self.told(path), self.status_code, self.headers)

    def told(self, path: str) -> dict[str, Any]:
        """Return the object in which the clients of a path read a failure."""
        if path.startswith(OLLAMA):
            return {"error": self.text}
        named = self.text if self.param is None or self.param in self.text else f"{self.param}: {self.text}"
        if path.startswith(MESSAGES):
            kind = _OF_MESSAGES.get(
                self.status_code, "invalid_request_error" if self.status_code < 500 else "api_error"
            )
            details = {"details": NO_THREADS} if self.param == "thread" else {}
            return {"type": "error", "error": {"type": kind, "message": named, **details}}
        if path in OF_TEXTS:
            return {"error": named, "error_type": _OF_TEXTS.get(self.status_code, "Validation")}
        return self.body

    def renamed(self, names: Mapping[str, str]) -> "ApiError":
        """Return the same error, whose field is called as the client called it."""
        param = self.param or ""
        known = (name for name in names if param == name or param.startswith((f"{name}.", f"{name}[")))
        field = max(known, key=len, default=None)
        if field is None:
            return self
        own = names[field]
        text = re.sub(rf"(?<!\w){re.escape(param)}(?!\w)", lambda _: own, self.detail)
        return ApiError(self.status_code, text, param=own, code=self.code, headers=self.headers)


@contextmanager
def naming(names: Mapping[str, str]) -> Iterator[None]:
    """Let errors name fields as a client of another interface calls them.

    Args:
        names: from the fields of a chat to those of the interface; of several that hold a place the longest counts.
    """
    try:
        yield
    except ApiError as error:
        raise error.renamed(names) from None


class AsciiJson(JSONResponse):
    """JSON in which every character beyond ASCII is escaped."""

    def render(self, content: Any) -> bytes:
        """Return the bytes."""
        import json

        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


def api_error(error: BaseException, param: str | None = None) -> ApiError:
    """Return what a failure is to the client; one that is nobody's fault but ours is logged and not told."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, BusyError):
        return busy(1, error.message)
    if isinstance(error, ClosedError):
        return closing()
    if isinstance(error, UsageError | DataError | ModelFileError):
        return ApiError(400, f"{error.message}: {error.hint}", param=param)
    if isinstance(error, OrreryError):
        return ApiError(500, f"{error.message}: {error.hint}")
    LOG.error("a request failed", exc_info=error)
    return ApiError(500, "the server failed on this request; its log says why")


def busy(seconds: int, message: str = "too many requests wait") -> ApiError:
    """Return the refusal of a request for which there is no place in the queue."""
    return ApiError(429, f"{message}; ask again in {seconds} s", headers={"Retry-After": str(seconds)})


def closing() -> ApiError:
    """Return the refusal of a server that stops, or whose engine has failed."""
    return ApiError(
        503, "the server takes no more requests; ask again once it runs again", headers={"Retry-After": "5"}
    )


def validation_error(faults: Sequence[Mapping[str, Any]], body: Any) -> ApiError:
    """Return the first fault that pydantic found, with the name of the field as a client would write it."""
    fault = faults[0]
    place = [part for part in fault["loc"] if part != "body"]
    if not place and fault["type"] == "missing":
        return ApiError(400, "the request has no body; send a JSON object", code="invalid_json")
    param = _param(place, body, missing=fault["type"] == "missing")
    reason = str(fault["msg"]).removeprefix("Value error, ")
    if fault["type"] == "literal_error" and isinstance(sent := fault["input"], str):
        reason += f", not {sent[:40]!r}"
    if place and (sent := sent_as(own := str(place[0]), body)) != own:
        reason = reason.replace(own, sent)
    return ApiError(400, f"{param or 'the body'}: {reason}", param=param or None, code="invalid_value")


def _param(place: Sequence[str | int], value: Any, missing: bool) -> str:
    """Return the part of a place that the request has: pydantic names the alternatives of a union besides."""
    name = ""
    for part in [sent_as(str(place[0]), value), *place[1:]] if place else ():
        if isinstance(value, Mapping) and (part in value or (missing and part == place[-1])):
            name += f".{part}" if name else str(part)
            value = value.get(part)
        elif isinstance(value, Sequence) and not isinstance(value, str) and isinstance(part, int) and part < len(value):
            name += f"[{part}]"
            value = value[part]
    return name[:200]


def install(app: FastAPI, paths: Sequence[str]) -> None:
    """Make every failure of an app such an object.

    Args:
        app: what answers.
        paths: those that it knows.
    """

    async def of_http(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if isinstance(error, ApiError):
            return error.response(request.url.path)
        message = str(error.detail)
        if error.status_code == 404:
            message = no_such_url(paths, request.url.path)
        elif error.status_code == 405:
            message = f"this URL takes {(error.headers or {}).get('Allow', 'another method')}, not {request.method}"
        return ApiError(error.status_code, message, headers=error.headers).response(request.url.path)

    async def of_validation(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return validation_error(error.errors(), error.body).response(request.url.path)

    app.add_exception_handler(HTTPException, of_http)
    app.add_exception_handler(RequestValidationError, of_validation)
