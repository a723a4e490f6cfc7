"""The application: every module of ``routes`` has a ``router``, and all of them stand behind the same gate."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

import orrery
from orrery.serving import errors, routes, tasks
from orrery.serving.limits import RequestGate
from orrery.serving.served import Served
from orrery.serving.settings import ServerSettings


def create_app(served: Served, settings: ServerSettings) -> FastAPI:
    """Return the application that serves a model.

    Raises:
        UsageError: settings that would let strangers in, or a task whose route is another's.
    """
    settings.check()
    # No pages of FastAPI's: they load their scripts from a network.
    app = FastAPI(title="Orrery", version=orrery.__version__, docs_url=None, redoc_url=None, redirect_slashes=False)
    app.state.served = served
    known = list(routers())
    errors.install(app, [route.path for router in known for route in router.routes if isinstance(route, APIRoute)])
    for router in known:
        app.include_router(router)
    app.add_middleware(RequestGate, settings=settings, metrics=served.metrics, check_room=served.check_room)
    app.openapi = lambda: _schema(app)  # type: ignore[method-assign]
    return app


def routers() -> Iterator[APIRouter]:
    """Yield the router of each module of ``routes``, in the order of their names, and that of a program's own tasks.

    Raises:
        UsageError: a program's task has a route that another answers.
    """
    names = sorted(module.name for module in pkgutil.iter_modules(routes.__path__))
    own = [importlib.import_module(f"{routes.__name__}.{name}").router for name in names]
    yield from own
    yield tasks.router(route for router in own for route in router.routes)


def _schema(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI description, without the answer 422, which is never given."""
    if app.openapi_schema is None:
        description = get_openapi(title=app.title, version=app.version, routes=app.routes)
        for path in description["paths"].values():
            for operation in path.values():
                operation["responses"].pop("422", None)
        for name in ("HTTPValidationError", "ValidationError"):
            description.get("components", {}).get("schemas", {}).pop(name, None)
        app.openapi_schema = description
    return app.openapi_schema
