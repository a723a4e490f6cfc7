"""``POST /v1/messages``: conversations as Anthropic's clients send them, and the next message."""

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.serving.abilities import CHAT
from orrery.serving.answers import begun
from orrery.serving.body import StrictRoute
from orrery.serving.chat_answers import ChatAnswers
from orrery.serving.conversations import PreparedConversation, prepare, read
from orrery.serving.errors import MESSAGES, AsciiJson, naming
from orrery.serving.events import NAMED_EVENTS, EventStream, answered
from orrery.serving.message_events import MessageEvents
from orrery.serving.message_requests import chat_of, terms_of
from orrery.serving.schema.chat import ChatRequest
from orrery.serving.schema.errors import MESSAGE_FAILURES
from orrery.serving.schema.messages import CountRequest, MessagesRequest
from orrery.serving.served import Served, Serving

router = APIRouter(route_class=StrictRoute, tags=["messages"])


@router.post(MESSAGES, responses=MESSAGE_FAILURES)
async def messages(request: MessagesRequest, served: Serving, http: HttpRequest) -> Response:
    """Answer a conversation; with ``stream`` as server-sent events."""
    asked, terms = chat_of(request), terms_of(request)

    def prepared_of(served: Served, _: ChatRequest) -> PreparedConversation:
        return prepare(served, asked.beginning(served), terms)

    with naming(asked.names):
        prepared, answers = await begun(served, asked.chat, prepared_of, stream=True)
    name = request.model or served.name
    events = MessageEvents(ChatAnswers(served, prepared), answers.id, name, request.max_tokens)
    if request.stream:
        return EventStream(answers, events, NAMED_EVENTS)
    return await answered(answers, http.receive, events.tell, events.whole)


@router.post(f"{MESSAGES}/count_tokens", responses=MESSAGE_FAILURES)
async def count_tokens(request: CountRequest, served: Serving) -> Response:
    """Return how many tokens the model reads of a conversation."""
    served.adapter_of(request.model)
    served.require(CHAT)
    asked, terms = chat_of(request), terms_of(request)

    def counted() -> int:
        chat = asked.beginning(served)
        return len(read(served, chat, terms)) + len(chat.prefix)

    with naming(asked.names), served.enter():
        return AsciiJson({"input_tokens": await served.do(counted)})
