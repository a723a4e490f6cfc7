"""What clients of llama.cpp's server ask under its own paths: ``/completion``, ``/infill``, ``/props``."""

from dataclasses import replace
from functools import partial
from typing import Any, final

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

import orrery
from orrery.exchange.stored import wishes
from orrery.generation.requests import Answering
from orrery.serving.abilities import CHAT
from orrery.serving.answers import AnswerPiece, begun
from orrery.serving.body import StrictRoute, checked
from orrery.serving.conversations import rendered
from orrery.serving.errors import ApiError, AsciiJson
from orrery.serving.events import EVENTS, EventStream, answered
from orrery.serving.requests import stopped_by
from orrery.serving.routes.completions import prepare
from orrery.serving.schema.completions import CompletionRequest
from orrery.serving.schema.errors import FAILURES
from orrery.serving.schema.llamacpp import USUAL, ContentRequest, LlamaCompletion, TemplateRequest, as_completion
from orrery.serving.served import Served, Serving
from orrery.serving.vectors import vectors_of

router = APIRouter(route_class=StrictRoute, tags=["llama.cpp"])

STOPS = {"end": "eos", "stop": "word", "length": "limit", "context": "limit"}
"""llama.cpp's names of the reasons for which an answer ends."""


@router.post("/infill", response_model=LlamaCompletion, responses=FAILURES)
@router.post("/completion", response_model=LlamaCompletion, responses=FAILURES)
async def completion(request: dict[str, Any], served: Serving, http: HttpRequest) -> Response:
    """Continue a prompt, or fill in between ``input_prefix`` and ``input_suffix``; with ``stream`` as events."""
    asked = checked(CompletionRequest, as_completion(request, {} if _draws(served) else USUAL))
    if asked.choices > 1 or (isinstance(asked.prompt, list) and not isinstance(asked.prompt[0], int)):
        raise ApiError(400, "one prompt has one answer here; /v1/completions takes several", param="prompt")
    if asked.echo or asked.logprobs is not None:
        raise ApiError(400, "/v1/completions has echo and logprobs", param="echo" if asked.echo else "logprobs")
    _, answers = await begun(served, asked, partial(prepare, usual=None), stream=bool(asked.stream))
    answer = _Answer(served, asked.model or served.name)
    if asked.stream:
        return EventStream(answers, answer, replace(EVENTS, end=b""))
    return await answered(answers, http.receive, answer.tell, answer.whole)


@router.post("/apply-template", responses=FAILURES)
async def apply_template(request: TemplateRequest, served: Serving) -> Response:
    """Return the text that the model reads of a conversation."""
    served.adapter_of(request.model)
    served.require(CHAT)
    tools = [tool.model_dump(exclude_none=True) for tool in request.tools or ()]
    with served.enter():
        ids = await served.do(rendered, served, request.messages, tools, more=request.chat_template_kwargs)
        return AsciiJson({"prompt": served.lm.tokenizer.decode(ids, special=True)})


@router.post("/embedding", responses=FAILURES)
async def embedding(request: ContentRequest, served: Serving, http: HttpRequest) -> Response:
    """Return the vector of each text."""
    served.check_model(request.model)
    texts = [request.content] if isinstance(request.content, str) else request.content
    vectors = await vectors_of(served, http.receive, texts, truncation=None, param="content", shorter="shorten it")
    return AsciiJson([{"index": index, "embedding": [one.vector.tolist()]} for index, one in enumerate(vectors)])


@router.get("/props", responses=FAILURES)
async def props(served: Serving) -> Response:
    """Return what the model is, and how it is served."""
    files = wishes(served.stored).sampling
    return AsciiJson({
        "default_generation_settings": {
            "n_ctx": served.lm.context,
            "params": {name: files.get(name) for name in USUAL} if _draws(served) else dict(USUAL),
        },
        "total_slots": served.settings.most_rows,
        "model_alias": served.name,
        "model_path": served.name,
        "chat_template": served.template.source if CHAT in served.routes and served.pictures is None else "",
        "modalities": {"vision": served.pictures is not None, "audio": False},
        "build_info": f"orrery-{orrery.__version__}",
    })  # fmt: skip


def _draws(served: Served) -> bool:
    """Say whether the model's files ask for draws."""
    return bool(wishes(served.stored).sampling["temperature"])


@final
class _Answer:
    """The one answer, whole or as it grows."""

    def __init__(self, served: Served, name: str) -> None:
        self._served, self._name = served, name
        self._ended: Answering | None = None

    def opening(self) -> list[dict[str, Any]]:
        """Return nothing: a completion has no first word."""
        return []

    def tell(self, piece: AnswerPiece) -> list[dict[str, Any]]:
        """Return the event of what became known."""
        self._ended = piece.answering if piece.ended else None
        return [{"index": 0, "content": piece.text, "tokens": [], "stop": False}] if piece.text else []

    def closing(self) -> list[dict[str, Any]]:
        """Return the last event."""
        return [self._last("")]

    def failing(self, error: ApiError) -> list[dict[str, Any]]:
        """Return the error."""
        return [error.body]

    def whole(self) -> dict[str, Any]:
        """Return the answer, once it has ended."""
        assert self._ended is not None
        return self._last(self._ended.result().text)

    def _last(self, text: str) -> dict[str, Any]:
        own = self._ended
        assert own is not None
        return {
            "index": 0,
            "content": text,
            "tokens": [],
            "stop": True,
            "model": self._name,
            "tokens_predicted": len(own.written),
            "tokens_evaluated": len(own.request.prompt),
            "tokens_cached": own.reused,
            "truncated": False,
            "stop_type": STOPS[own.result().finish_reason],
            "stopping_word": stopped_by(self._served, own) or "",
        }
