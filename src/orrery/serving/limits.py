"""What every request passes before a route sees it: whom it addresses, where it comes from, its key, its size."""

import hmac
import secrets
import time
from collections.abc import Callable, Sequence
from typing import final

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from orrery.serving.body import BoundedBody
from orrery.serving.errors import ENDINGS, ApiError, api_error
from orrery.serving.metrics import Metrics
from orrery.serving.settings import ServerSettings, is_loopback

WATCHED, PAGE = "/health", "/"
"""What needs no key: whoever watches over the server asks it, and the page, which holds nothing of the model."""
STATIC = "/static/"
OWN_SITES = ("same-origin", "none")
"""What a browser says in Sec-Fetch-Site of the server's own pages, and of an address that somebody typed."""
_OF_PAGES = {
    "access-control-allow-methods": "DELETE, GET, POST",
    "access-control-max-age": "600",
}
"""What the page that is named may do."""


@final
class RequestGate:
    """The gate before the routes.

    Args:
        app: the routes.
        settings: what is let through.
        metrics: where requests are counted, by route and status.
        check_room: raises where there is no room for one more request: a refusal must cost less than an answer.
    """

    def __init__(
        self, app: ASGIApp, settings: ServerSettings, metrics: Metrics, check_room: Callable[[], None]
    ) -> None:
        self._app, self._settings, self._metrics, self._check_room = app, settings, metrics, check_room
        key = settings.api_key
        self._key = None if key is None else f"Bearer {key.get_secret_value()}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await (self._app(scope, receive, send) if scope["type"] == "lifespan" else _refuse_socket(receive, send))
            return
        headers, out = Headers(scope=scope), _Sending(scope, send, self._settings.cors_origin)
        began = time.perf_counter()
        scope.setdefault("state", {})["request_id"] = out.request_id
        try:
            answer = self._answer_at_once(scope, headers)
            if answer is None:
                body = BoundedBody(receive, self._settings.safety, _length(headers))
                if scope["method"] == "HEAD" and scope["path"] != PAGE:  # the connection sends no body of it
                    scope = {**scope, "method": "GET"}
                await self._app(scope, body, out)
            else:
                await answer(scope, receive, out)
        except ApiError as error:
            await error.response(scope["path"])(scope, receive, out)
        except ENDINGS:
            raise
        except BaseException as error:  # a panic of a library in Rust is no Exception
            if out.status is not None:
                raise
            await api_error(error).response(scope["path"])(scope, receive, out)
        finally:
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.count("orrery_requests_total", route=route, status=str(out.status or 499))
            self._metrics.observe("orrery_request_seconds", time.perf_counter() - began)

    def _answer_at_once(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the answer to a browser's question; nothing for a request that may pass.

        Raises:
            ApiError: it may not.
        """
        _check_framing(scope, headers)
        self._check_size(scope)
        self._check_host(headers)
        self._check_site(scope, headers)
        origin = headers.get("origin")
        if origin is not None:
            self._check_origin(origin, headers)
            if scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
                # Whatever its package sends: each has headers of its own (x-stainless-os, anthropic-version).
                wanted = {"access-control-allow-headers": headers.get("access-control-request-headers", "")}
                return Response(status_code=204, headers=_OF_PAGES | wanted)
        if not _is_open(scope) and not scope["path"].startswith(STATIC):
            self._check_key(
                headers.getlist("authorization") or [f"Bearer {key}" for key in headers.getlist("x-api-key")]
            )
        if scope["method"] == "POST":
            self._check_room()
        return None

    def _check_size(self, scope: Scope) -> None:
        """Refuse headers that came whole and are too long; those that came in parts the connection has refused."""
        size = len(scope["raw_path"]) + len(scope["query_string"])
        size += sum(len(name) + len(value) for name, value in scope["headers"])
        most = self._settings.safety.max_headers
        if size > most:
            raise ApiError(431, f"the URL and the headers may have {most:,} bytes", headers={"Connection": "close"})

    def _check_host(self, headers: Headers) -> None:
        """Refuse a name that is not the server's: a page that rebinds its own name to this address has such a one."""
        given = headers.getlist("host")
        if len(given) > 1 or (given and not _host(given[0])):
            raise ApiError(400, "the Host header is malformed", code="invalid_host")
        host, own = _host(given[0]) if given else "", self._settings
        if not given or is_loopback(host) or host in (own.host.lower(), *map(str.lower, own.allowed_hosts)):
            return
        if is_loopback(own.host) or own.allowed_hosts:
            raise ApiError(
                403, f"this server is not called {host[:100]!r}; --allowed-host lets it be", code="invalid_host"
            )

    def _check_origin(self, origin: str, headers: Headers) -> None:
        own = headers.get("host", "").lower()
        if origin.lower() not in (f"http://{own}", f"https://{own}", self._settings.cors_origin):
            raise ApiError(403, "pages of other origins may not call this server", code="invalid_origin")

    def _check_site(self, scope: Scope, headers: Headers) -> None:
        """Refuse what a browser fetches for a page of another site: an image or a script of its has no Origin.

        The page itself may be gone to from anywhere. Programs that are no browsers do not send the header.
        """
        if headers.get("origin") is not None:  # looked at next, and it says more
            return
        visits = headers.get("sec-fetch-mode") == "navigate" and _is_open(scope)
        if not visits and headers.get("sec-fetch-site", "none").lower() not in OWN_SITES:
            raise ApiError(403, "pages of other sites may not call this server", code="invalid_origin")

    def _check_key(self, given: Sequence[str]) -> None:
        if self._key is None:
            return
        sent = given[0].encode("latin-1", "replace") if len(given) == 1 else b""
        if not hmac.compare_digest(_normal(sent), self._key):
            message = "the API key is missing or wrong: send Authorization: Bearer KEY, or x-api-key: KEY"
            raise ApiError(401, message, headers={"WWW-Authenticate": "Bearer"})


def _is_open(scope: Scope) -> bool:
    """Say whether a request needs no key; what is posted to the page's path is answered by the model."""
    return scope["path"] == WATCHED or (scope["path"] == PAGE and scope["method"] in ("GET", "HEAD"))


class _Sending:
    """What a response passes: it gets its headers, and its status is remembered."""

    def __init__(self, scope: Scope, send: Send, cors_origin: str | None) -> None:
        self.status: int | None = None
        self.request_id = f"req-{secrets.token_hex(12)}"
        self._send, self._scope, self._cors_origin = send, scope, cors_origin

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            more = {
                "x-request-id": self.request_id,
                "x-content-type-options": "nosniff",
                "cross-origin-resource-policy": "same-origin",
            }
            if "cache-control" not in Headers(raw=message.get("headers", [])):
                more["cache-control"] = "no-store"
            if self._cors_origin is not None:
                more |= {"vary": "Origin"}
                if Headers(scope=self._scope).get("origin") == self._cors_origin:
                    told = "retry-after, x-request-id"
                    more |= {"access-control-allow-origin": self._cors_origin, "access-control-expose-headers": told}
            message["headers"] = [*message.get("headers", []), *((k.encode(), v.encode()) for k, v in more.items())]
        await self._send(message)


def _check_framing(scope: Scope, headers: Headers) -> None:
    """Refuse a version of HTTP that is not spoken, and a body whose end can be read in two ways."""
    if scope["http_version"] not in ("1.0", "1.1"):
        raise ApiError(400, "HTTP/1.1 is spoken here", code="invalid_http", headers={"Connection": "close"})
    lengths = headers.getlist("content-length")
    if ("transfer-encoding" in headers and lengths) or len(set(lengths)) > 1:
        reason = "a body has either a Content-Length or a Transfer-Encoding"
        raise ApiError(400, reason, code="invalid_framing", headers={"Connection": "close"})


def _length(headers: Headers) -> int | None:
    given = headers.get("content-length")
    return int(given) if given is not None and given.isascii() and given.isdigit() else None


def _host(given: str) -> str:
    """Return the name of a Host header without its port, in lower case; nothing for one that is none."""
    name, bracket, port = given.rpartition("]") if given.startswith("[") else ("", "", given)
    if bracket:
        return f"{name[1:]}".lower() if not port or port.startswith(":") else ""
    host, _, number = port.partition(":")
    return host.lower() if host and (not number or number.isdigit()) and ":" not in number else ""


def _normal(authorization: bytes) -> bytes:
    """Return the header with its scheme spelt in one way."""
    scheme, blank, key = authorization.partition(b" ")
    return b"Bearer " + key.strip() if blank and scheme.lower() == b"bearer" else authorization


async def _refuse_socket(receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.close", "code": 1008})
