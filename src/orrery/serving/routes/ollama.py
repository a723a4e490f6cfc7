"""``POST /api/chat`` and ``/api/generate``: what Ollama's clients ask a model to write."""

from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.serving.answers import Answers, GoneError, begun
from orrery.serving.body import StrictRoute
from orrery.serving.chat_answers import ChatAnswers
from orrery.serving.conversations import prepare
from orrery.serving.errors import AsciiJson, naming
from orrery.serving.events import LINES, EventStream
from orrery.serving.ollama_answers import OllamaAnswer, as_message, as_response, now
from orrery.serving.ollama_options import FIELDS
from orrery.serving.ollama_requests import called, chat_of, messages_of, prepared_generate, terms_of, with_pictures
from orrery.serving.schema import ollama
from orrery.serving.schema.chat import ChatRequest
from orrery.serving.schema.ollama_errors import FAILURES
from orrery.serving.served import Served, Serving

router = APIRouter(route_class=StrictRoute, tags=["ollama"])


@router.post("/api/chat", responses=FAILURES)
async def chat(asked: ollama.OllamaChatRequest, served: Serving, http: HttpRequest) -> Response:
    """Answer a conversation; as lines of JSON unless ``stream`` is false."""
    with naming(FIELDS):
        if not asked.messages:
            return _loaded(served, asked, {"message": {"role": "assistant", "content": ""}})
        tools = [{"type": "function", "function": tool.function} for tool in asked.tools or ()]
        own = chat_of(served, asked, messages_of(served, asked.messages), tools)
        prepared, answers = await begun(served, own, partial(prepare, terms=terms_of(asked)), stream=True)
    told = OllamaAnswer(ChatAnswers(served, prepared), answers, _name(served, asked), as_message, False)
    return await _answer(asked, answers, told, http)


@router.post("/api/generate", responses=FAILURES)
async def generate(asked: ollama.GenerateRequest, served: Serving, http: HttpRequest) -> Response:
    """Answer a prompt, continue it, or fill in before a suffix; as lines of JSON unless ``stream`` is false."""
    with naming({**FIELDS, "messages": "prompt"}):
        if not (asked.prompt or asked.suffix or asked.images):
            return _loaded(served, asked, {"response": ""})
        system = [{"role": "system", "content": asked.system}] if asked.system else []
        said = with_pictures(served, asked.prompt or "", asked.images, "images")
        own = chat_of(served, asked, [*system, {"role": "user", "content": said}], None)

        def prepared_of(served: Served, chat: ChatRequest) -> Any:
            return prepared_generate(served, chat, asked, terms_of(asked))

        prepared, answers = await begun(served, own, prepared_of, stream=True)
    tells_context = not asked.raw and served.pictures is None
    told = OllamaAnswer(ChatAnswers(served, prepared), answers, _name(served, asked), as_response, tells_context)
    return await _answer(asked, answers, told, http)


async def _answer(asked: ollama.Writing, answers: Answers, told: OllamaAnswer, http: HttpRequest) -> Response:
    if asked.stream is not False:
        return EventStream(answers, told, LINES)
    try:
        async for pieces in answers.pieces(http.receive):
            for piece in pieces:
                told.tell(piece)
    except GoneError:
        return Response(status_code=499)
    return AsciiJson(told.whole())


def _loaded(served: Served, asked: ollama.Writing, empty: dict[str, Any]) -> Response:
    """Return what is answered to who asks for nothing: the model is loaded, and stays so."""
    called(served, asked.model)
    served.writer()
    head = {"model": _name(served, asked), "created_at": now()}
    return AsciiJson({**head, **empty, "done": True, "done_reason": "load"})


def _name(served: Served, asked: ollama.Writing) -> str:
    return asked.model or served.name
