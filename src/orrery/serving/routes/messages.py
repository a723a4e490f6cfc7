"""``POST /v1/messages``: conversations as Anthropic's clients send them, and the next message."""

from functools import partial

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.serving.abilities import CHAT
from orrery.serving.answers import GoneError, begun
from orrery.serving.body import StrictRoute
from orrery.serving.chat_answers import ChatAnswers
from orrery.serving.conversations import prepare, read
from orrery.serving.errors import MESSAGES, AsciiJson, naming
from orrery.serving.events import NAMED_EVENTS, EventStream
from orrery.serving.message_events import MessageEvents
from orrery.serving.message_requests import FIELDS, chat_of, terms_of
from orrery.serving.schema.errors import MESSAGE_FAILURES
from orrery.serving.schema.messages import CountRequest, MessagesRequest
from orrery.serving.served import Serving

router = APIRouter(route_class=StrictRoute, tags=["messages"])


@router.post(MESSAGES, responses=MESSAGE_FAILURES)
async def messages(request: MessagesRequest, served: Serving, http: HttpRequest) -> Response:
    """Answer a conversation; with ``stream`` as server-sent events."""
    with naming(FIELDS):
        chat, terms = chat_of(served, request), terms_of(request)
        prepared, answers = await begun(served, chat, partial(prepare, terms=terms), stream=True)
    name = request.model or served.name
    events = MessageEvents(ChatAnswers(served, prepared), answers.id, name, request.max_tokens)
    if request.stream:
        return EventStream(answers, events, NAMED_EVENTS)
    try:
        async for pieces in answers.pieces(http.receive):
            for piece in pieces:
                events.tell(piece)
    except GoneError:
        return Response(status_code=499)
    return AsciiJson(events.whole())


@router.post(f"{MESSAGES}/count_tokens", responses=MESSAGE_FAILURES)
async def count_tokens(request: CountRequest, served: Serving) -> Response:
    """Return how many tokens the model reads of a conversation."""
    served.adapter_of(request.model)
    served.require(CHAT)
    with naming(FIELDS), served.enter():
        chat = chat_of(served, request)
        ids = await served.do(read, served, chat, terms_of(request))
        return AsciiJson({"input_tokens": len(ids) + len(chat.prefix)})
