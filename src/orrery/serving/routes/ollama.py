"""``POST /api/chat`` and ``/api/generate``: what Ollama's clients ask a model to write."""

from functools import partial
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.serving.answers import Answers, begun
from orrery.serving.body import StrictRoute
from orrery.serving.chat_answers import ChatAnswers
from orrery.serving.conversations import prepare
from orrery.serving.errors import AsciiJson, naming
from orrery.serving.events import LINES, EventStream, answered
from orrery.serving.ollama_answers import OllamaAnswer, as_message, as_response, now
from orrery.serving.ollama_options import FIELDS
from orrery.serving.ollama_requests import called, chat_of, messages_of, prepared_generate, terms_of, with_pictures
from orrery.serving.schema import ollama
from orrery.serving.schema.chat import ChatRequest
from orrery.serving.schema.ollama_errors import FAILURES
from orrery.serving.served import Served, Serving

router = APIRouter(route_class=StrictRoute, tags=["ollama"])


@router.post("/api/chat", responses=FAILURES)
async def chat(request: ollama.OllamaChatRequest, served: Serving, http: HttpRequest) -> Response:
    """Answer a conversation; as lines of JSON unless ``stream`` is false."""
    with naming(FIELDS):
        if not request.messages:
            return _loaded(served, request, {"message": {"role": "assistant", "content": ""}})
        tools = [{"type": "function", "function": tool.function} for tool in request.tools or ()]
        own = chat_of(served, request, messages_of(served, request.messages), tools)
        prepared, answers = await begun(served, own, partial(prepare, terms=terms_of(request)), stream=True)
    output = OllamaAnswer(ChatAnswers(served, prepared), answers, _name(served, request), as_message, False)
    return await _answer(request, answers, output, http)


@router.post("/api/generate", responses=FAILURES)
async def generate(request: ollama.GenerateRequest, served: Serving, http: HttpRequest) -> Response:
    """Answer a prompt, continue it, or fill in before a suffix; as lines of JSON unless ``stream`` is false."""
    with naming({**FIELDS, "messages": "prompt"}):
        if not (request.prompt or request.suffix or request.images):
            return _loaded(served, request, {"response": ""})
        system = [{"role": "system", "content": request.system}] if request.system else []
        said = with_pictures(served, request.prompt or "", request.images, "images")
        own = chat_of(served, request, [*system, {"role": "user", "content": said}], None)

        def prepared_of(served: Served, chat: ChatRequest) -> Any:
            return prepared_generate(served, chat, request, terms_of(request))

        prepared, answers = await begun(served, own, prepared_of, stream=True)
    tells_context = not request.raw and served.pictures is None
    output = OllamaAnswer(ChatAnswers(served, prepared), answers, _name(served, request), as_response, tells_context)
    return await _answer(request, answers, output, http)


async def _answer(request: ollama.Writing, answers: Answers, output: OllamaAnswer, http: HttpRequest) -> Response:
    if request.stream is not False:
        return EventStream(answers, output, LINES)
    return await answered(answers, http.receive, output.tell, output.whole)


def _loaded(served: Served, request: ollama.Writing, empty: dict[str, Any]) -> Response:
    """Return what is answered to who asks for nothing: the model is loaded, and stays so."""
    called(served, request.model)
    served.writer()
    head = {"model": _name(served, request), "created_at": now()}
    return AsciiJson({**head, **empty, "done": True, "done_reason": "load"})


def _name(served: Served, request: ollama.Writing) -> str:
    return request.model or served.name
