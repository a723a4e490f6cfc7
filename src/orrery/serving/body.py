"""The body of a request: bounded before it is held, and JSON in the strict sense."""

import asyncio
import re
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, final

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope

from orrery.checkpoints import strict_json
from orrery.serving.errors import ENDINGS, OLLAMA, ApiError, api_error, validation_error
from orrery.serving.settings import Safety

Model = TypeVar("Model", bound=BaseModel)

DEPTH = 64
"""Levels of lists and objects in a body."""
AT_ONCE = 32 << 10
"""Bytes of a body that is parsed between two events; a longer one is parsed by another thread."""
_UNNAMED = ("", "application/x-www-form-urlencoded", "text/plain")
"""Content types of who names none: pages of other origins, which may send these too, are refused by their Origin."""
REST = 3.0
"""Times as long as the parsing of a long body took, for which no other is parsed."""
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class BoundedBody:
    """What an app receives of one request: no more bytes than allowed, and not slower than allowed."""

    def __init__(self, receive: Receive, safety: Safety, declared: int | None) -> None:
        self._receive, self._safety = receive, safety
        self._taken, self._whole = 0, False
        self._deadline: float | None = None
        if declared is not None and declared > safety.max_body:
            raise self._too_large()

    async def __call__(self) -> Message:
        """Return the next message.

        Raises:
            ApiError: 413 for a body that is too long, 408 for one that does not come.
        """
        if self._whole:
            return await self._receive()
        loop = asyncio.get_running_loop()
        self._deadline = self._deadline or loop.time() + self._safety.read_timeout
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            reason = f"the body did not come within {self._safety.read_timeout:g} s"
            raise ApiError(408, reason, headers={"Connection": "close"}) from None
        self._taken += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._taken > self._safety.max_body:
            raise self._too_large()
        return message

    def _too_large(self) -> ApiError:
        return ApiError(413, f"a body may have {self._safety.max_body:,} bytes")


def parse(body: bytes) -> Any:
    """Return what a body says.

    Raises:
        ApiError: it is not UTF-8, not JSON, or JSON that readers take in different ways: a key twice, NaN, an
            infinite number, half a character; or it is nested too deeply.
    """
    try:
        value = strict_json.parse(body.decode())
    except UnicodeDecodeError as error:
        raise _malformed(f"it is not UTF-8 (byte {error.start})") from None
    except RecursionError:
        raise _malformed(f"it is nested more than {DEPTH} levels deep") from None
    except ValueError as error:
        reason = str(error)
        raise _malformed("a number has too many digits" if "integer string conversion" in reason else reason) from None
    if body.count(b"[") + body.count(b"{") > DEPTH:  # else it cannot be: lists of numbers are not looked through
        _check_depth(value)
    if _SURROGATE.search(body) and _half_characters(value):
        raise _malformed("a text holds half a character (a lone surrogate)")
    return value


@final
class LongBodies:
    """Parses long bodies one after another, and rests in between.

    Parsing holds the interpreter: eight threads that parse megabytes made everybody wait for half a second, again and
    again. This way at least ``REST`` of ``REST + 1`` parts of the time are for others.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "orrery-parsing")
        self._rested = 0.0

    async def parse(self, body: bytes) -> Any:
        """Return what a body says; errors as in ``parse``."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._parse, body)

    def _parse(self, body: bytes) -> Any:
        time.sleep(max(0.0, self._rested - time.monotonic()))
        began = time.monotonic()
        try:
            return parse(body)
        finally:
            ended = time.monotonic()
            self._rested = ended + REST * (ended - began)


LONG_BODIES = LongBodies()
"""Of this process: its servers share one interpreter."""


def _malformed(reason: str) -> ApiError:
    return ApiError(400, f"the body cannot be read as JSON: {reason}", code="invalid_json")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEPTH + 1):
        inner = [child for one in level if isinstance(one, dict | list) for child in _children(one)]
        level = [child for child in inner if isinstance(child, dict | list)]
        if not level:
            return
    raise _malformed(f"it is nested more than {DEPTH} levels deep")


def _children(value: dict[str, Any] | list[Any]) -> list[Any]:
    return list(value.values()) if isinstance(value, dict) else value


def _half_characters(value: Any) -> bool:
    """Return whether a text, or the name of a field, cannot be written as UTF-8."""
    if isinstance(value, str):
        return any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, dict):
        return any(map(_half_characters, value)) or any(map(_half_characters, value.values()))
    return isinstance(value, list) and any(map(_half_characters, value))


def _named(scope: Scope) -> Scope:
    """Return a request to Ollama's interface that names no content type as one of JSON.

    Ollama asks for none, and its documentation sends JSON as curl does without one.
    """
    headers = Headers(scope=scope)
    if not scope["path"].startswith(OLLAMA) or headers.get("content-type", "").partition(";")[0] not in _UNNAMED:
        return scope
    others = [(name, value) for name, value in scope["headers"] if name != b"content-type"]
    return {**scope, "headers": [*others, (b"content-type", b"application/json")]}


def _check_kind(content_type: str, encoding: str) -> None:
    """Refuse a body that calls itself anything but plain JSON in UTF-8."""
    kind, *settings = [part.strip().lower() for part in content_type.split(";")]
    charsets = [
        value.strip("\"' ") for name, _, value in (part.partition("=") for part in settings) if name == "charset"
    ]
    if kind != "application/json" or any(charset not in ("utf-8", "utf8", "us-ascii") for charset in charsets):
        raise ApiError(415, "send the body as Content-Type: application/json, in UTF-8")
    if encoding.strip().lower() != "identity":
        raise ApiError(415, "send the body as it is, without a Content-Encoding")


class _StrictRequest(Request):
    """A request whose body is JSON in the strict sense, or refused."""

    async def body(self) -> bytes:
        if self.method == "POST":
            _check_kind(self.headers.get("content-type", ""), self.headers.get("content-encoding", "identity"))
        return await super().body()

    async def json(self) -> Any:
        body = await self.body()
        return parse(body) if len(body) <= AT_ONCE else await LONG_BODIES.parse(body)


def checked(kind: type[Model], given: Mapping[str, Any]) -> Model:
    """Return a body that a route has made of what a client sent.

    Raises:
        ApiError: a field is wrong.
    """
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        raise validation_error(error.errors(), given) from None


class StrictRoute(APIRoute):
    """A route whose every failure is an error object, and the connection stays."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handler = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handler(_StrictRequest(_named(request.scope), request.receive))
            except (HTTPException, RequestValidationError):
                raise  # told by the app's own handlers
            except ENDINGS:
                raise
            except BaseException as error:  # a panic of a library in Rust is no Exception
                return api_error(error).response(request.url.path)

        return answer
