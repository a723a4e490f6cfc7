"""``/v1/responses``: items and the next ones, as the newer interface of OpenAI has them."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.serving.abilities import CHAT, RESPONSES
from orrery.serving.answers import begun
from orrery.serving.body import StrictRoute
from orrery.serving.chat_answers import ChatAnswers
from orrery.serving.conversations import Terms, prepare, rendered
from orrery.serving.errors import ApiError, AsciiJson, naming
from orrery.serving.events import NAMED_EVENTS, EventStream, answered
from orrery.serving.response_events import OutputEvents
from orrery.serving.response_requests import FIELDS, chat_of, response_of, with_answer
from orrery.serving.schema.chat import Message
from orrery.serving.schema.errors import FAILURES
from orrery.serving.schema.responses import ResponsesRequest
from orrery.serving.served import Served, Serving

router = APIRouter(route_class=StrictRoute, tags=["responses"])


@router.post(RESPONSES, responses=FAILURES)
async def responses(request: ResponsesRequest, served: Serving, http: HttpRequest) -> Response:
    """Answer some items with the next ones; with ``stream`` as server-sent events."""
    with naming(FIELDS):
        said, chat = chat_of(request, served.kept)
        terms = Terms(cuts=request.truncation == "auto", apart=True)
        prepared, answers = await begun(served, chat, partial(prepare, terms=terms), stream=True)
    events = OutputEvents(ChatAnswers(served, prepared), response_of(served, request, answers.id), request.tells_scores)
    keeping = _Keeping(served, events, said if request.store is not False else None)
    if request.stream:
        return EventStream(answers, keeping, NAMED_EVENTS)
    return await answered(answers, http.receive, keeping.tell, keeping.whole)


@router.get(f"{RESPONSES}/{{response_id}}", responses=FAILURES)
async def kept(response_id: str, served: Serving, http: HttpRequest) -> Response:
    """Return a response that was kept, whole."""
    if http.query_params.get("stream") == "true":
        raise ApiError(400, "a response that is kept is told whole", param="stream", code="unsupported_parameter")
    return AsciiJson(served.kept.find(response_id, "response_id").response)


@router.delete(f"{RESPONSES}/{{response_id}}", responses=FAILURES)
async def forget(response_id: str, served: Serving) -> Response:
    """Forget a response that was kept."""
    served.kept.remove(response_id)
    return AsciiJson({"id": response_id, "object": "response.deleted", "deleted": True})


@router.post(f"{RESPONSES}/input_tokens", responses=FAILURES)
async def input_tokens(request: ResponsesRequest, served: Serving) -> Response:
    """Return how many tokens the model reads of some items."""
    served.adapter_of(request.model)
    served.require(CHAT)
    with naming(FIELDS), served.enter():
        chat = chat_of(request, served.kept)[1]
        tools = [tool.model_dump(exclude_none=True) for tool in chat.used_tools]
        ids = await served.do(rendered, served, chat.messages, tools, "tools", chat.reasoning_effort)
    return AsciiJson({"object": "response.input_tokens", "input_tokens": len(ids)})


@router.post(f"{RESPONSES}/compact", include_in_schema=False)
async def compact() -> Response:
    """Refuse to shorten a conversation: else the path would be read as a response's."""
    raise ApiError(404, f'there is no such URL: "truncation": "auto" of POST {RESPONSES} leaves out the oldest turns')


class _Keeping:
    """What tells of a response and keeps it at its end.

    Args:
        served: where it is kept.
        events: what tells.
        said: the conversation before it; nothing where it is not to be kept.
    """

    def __init__(self, served: Served, events: OutputEvents, said: Sequence[Message] | None) -> None:
        self._served, self._events, self._said = served, events, said
        self.opening, self.tell, self.failing = events.opening, events.tell, events.failing

    def whole(self) -> dict[str, Any]:
        """Return the response, which is kept now."""
        return self._kept(self._events.whole())

    def closing(self) -> list[dict[str, Any]]:
        """Return the last event; the response is kept now."""
        events = self._events.closing()
        self._kept(events[-1]["response"])
        return events

    def _kept(self, response: dict[str, Any]) -> dict[str, Any]:
        if self._said is not None:
            self._served.kept.keep(response, with_answer(self._said, response["output"]))
        return response
