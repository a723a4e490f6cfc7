"""How a task answers over HTTP, and the routes of tasks that need none of their own."""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter
from fastapi.routing import APIRoute
from pydantic import BaseModel, Field, create_model
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import BaseRoute

from orrery.errors import UsageError
from orrery.serving.body import StrictRoute
from orrery.serving.errors import AsciiJson
from orrery.serving.reading import BATCH, SHORTER, Done, over_rows
from orrery.serving.schema.errors import FAILURES
from orrery.serving.schema.fields import Body, Text
from orrery.serving.schema.reading import MOST_INPUTS, Given, Texts
from orrery.serving.served import Served, Serving
from orrery.tasks import TASKS, Pipeline, Task
from orrery.tasks.many_labels import ManyLabels
from orrery.tasks.next_item import NextItem

GENERIC = "/v1/tasks/"
"""How the routes of tasks without one of their own begin."""


class AnswerList(BaseModel):
    """The answers of a task: of each input its index, and the answer by the name that the task gives it."""

    object: str
    data: list[dict[str, Any]]
    model: str


def router(others: Iterable[BaseRoute] = ()) -> APIRouter:
    """Return the routes of the tasks that a program has registered, and of those that no other module answers.

    Args:
        others: the server's own routes, none of which a task may take.

    Raises:
        UsageError: the route of a task is no path, or another answers it; both are named.
    """
    routes, others = APIRouter(route_class=StrictRoute, tags=["tasks"]), list(others)
    answered_here: list[type[Task]] = [NextItem, ManyLabels, *TASKS.own()]
    for task in TASKS.all():
        if issubclass(task, Pipeline) and (task in answered_here or task.route.startswith(GENERIC)):
            check_route(task, others)
            how: dict[str, Any] = {"name": task.kind, "description": task.__doc__, "responses": FAILURES}
            routes.add_api_route(task.route, endpoint(task), methods=["POST"], response_model=AnswerList, **how)
            others.append(routes.routes[-1])
    return routes


def check_route(task: type[Pipeline], others: Iterable[BaseRoute]) -> None:
    """Refuse the route of a task that is no path, or that another route answers.

    Raises:
        UsageError: it is so; the task, its route and what answers it are named.
    """
    said, hint = f"the route {task.route} of the task {task.kind}", f"give the task another, such as {GENERIC}NAME"
    if not task.route.startswith("/"):
        raise UsageError(f"{said} does not begin with /", hint)
    for other in others:
        if isinstance(other, APIRoute) and other.path_regex.match(task.route):
            answers = f"the task {other.name}" if "tasks" in other.tags else "one of the server's own"
            raise UsageError(f"{said} is answered by {answers}: {other.path}", hint)


def endpoint(task: type[Pipeline]) -> Callable[..., Coroutine[Any, Any, Response]]:
    """Return what answers requests of a task."""

    async def answer(request: Any, served: Serving, http: HttpRequest) -> Response:
        return await answered(task, request, served, http)

    answer.__annotations__["request"] = request_of(task)
    return answer


async def answered(
    task: type[Pipeline], request: Any, served: Served, http: HttpRequest, route: str = "", shorter: str = SHORTER
) -> Response:
    """Return the answers of a task to a request.

    Args:
        task: what is asked.
        request: the body: the name of a model, ``input``, and settings of the task.
        served: the model.
        http: the request, which tells when the client leaves.
        route: the path, where it is not the task's own.
        shorter: what a client can do about a text that is too long.

    Raises:
        ApiError: the model cannot answer this, or not read a text.
    """
    served.check_model(request.model)
    served.require(route or task.route)
    settings = {name: getattr(request, name) for name in type(request).model_fields.keys() & task.Settings.model_fields}
    given = request.input if isinstance(request.input, list) else [request.input]
    items = [one if isinstance(one, str) else one.model_dump() for one in given]
    answers = await over_rows(served, http.receive, pipelined(served, task, items, settings), shorter=shorter)
    data = [{"index": index, task.said: one} for index, one in enumerate(answers)]
    return AsciiJson({"object": "list", "data": data, "model": served.name})


def pipelined(
    served: Served, task: type[Pipeline], items: Sequence[Any], settings: Mapping[str, Any]
) -> Callable[[Done], list[Any]]:
    """Return what answers inputs, as clients are told it."""
    name = (task.names or (task.kind,))[0].replace("_", "-")

    def work(done: Done) -> list[Any]:
        pipe = task(served.lm, name, BATCH, **settings)
        return [pipe.told(one) for one in pipe.several([task.from_client(item) for item in items], done=done)]

    return work


def request_of(task: type[Pipeline]) -> type[Body]:
    """Return the body of a task's requests: a text or several, or objects of several texts, and its settings."""
    given: Any = Texts
    if len(task.fields) > 1:
        texts: Any = {name: (Given, ...) for name in task.fields}
        one = create_model(f"{task.__name__}Input", **texts)
        given = one | Annotated[list[one], Field(min_length=1, max_length=MOST_INPUTS)]  # type: ignore[valid-type]
    settings: Any = {name: (field.rebuild_annotation(), field) for name, field in task.Settings.model_fields.items()}
    return create_model(
        f"{task.__name__}Request", __base__=Body, __doc__=task.__doc__, model=(Text | None, None), input=(given, ...),
        **settings,
    )  # fmt: skip
