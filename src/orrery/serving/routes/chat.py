"""``POST /v1/chat/completions``: conversations and their next message."""

from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.generation.requests import TokenScore
from orrery.serving.answer_head import head
from orrery.serving.answers import AnswerPiece, begun
from orrery.serving.body import StrictRoute
from orrery.serving.chat_answers import AnswerPart, ChatAnswers, id_of
from orrery.serving.conversations import in_channels, prepare
from orrery.serving.errors import ApiError
from orrery.serving.events import EventStream, answered
from orrery.serving.held_scores import shown_scores
from orrery.serving.logprobs import of_chat
from orrery.serving.old_functions import told
from orrery.serving.schema.chat import ChatCompletion, ChatRequest
from orrery.serving.schema.errors import FAILURES
from orrery.serving.served import Serving
from orrery.serving.usage import usage_of
from orrery.text.chat.calls import ParsedToolCall

router = APIRouter(route_class=StrictRoute, tags=["chat"])


@router.post("/openai/v1/chat/completions", include_in_schema=False)  # where Groq's client asks
@router.post("/api/v0/chat/completions", include_in_schema=False)  # where LM Studio's clients ask
@router.post("/v1/chat/completions", response_model=ChatCompletion, responses=FAILURES)
async def chat_completions(request: ChatRequest, served: Serving, http: HttpRequest) -> Response:
    """Answer a conversation; with ``stream`` as server-sent events."""
    told = bool(request.stream or request.used_tools) or in_channels(served)
    prepared, answers = await begun(served, request, prepare, stream=told)
    chat = ChatAnswers(served, prepared)
    if request.stream:
        return EventStream(
            answers, _Stream(chat, head("chatcmpl", "chat.completion.chunk", served, request.model, answers))
        )

    def whole() -> dict[str, Any]:
        shared = head("chatcmpl", "chat.completion", served, request.model, answers)
        choices = [_Told(chat).choice(index) for index in range(request.choices)]
        return {**shared, "choices": choices, "usage": usage_of(chat.ended, request.choices)}

    return await answered(answers, http.receive, chat.take, whole)


class _Told:
    """The objects of a chat's answers."""

    def __init__(self, chat: ChatAnswers) -> None:
        self.chat, self.asked = chat, chat.asked

    def called(self, calls: Sequence[ParsedToolCall], numbered: bool) -> dict[str, Any]:
        """Return the field that tells calls, in the form in which the client sent what may be called."""
        if self.asked.functions:
            return {"function_call": told(calls[0])}
        numbers: list[dict[str, Any]] = [{"index": number} if numbered else {} for number in range(len(calls))]
        return {"tool_calls": [{**number, **_told(call)} for number, call in zip(numbers, calls, strict=True)]}

    def reason(self, index: int, calls: Sequence[ParsedToolCall]) -> str:
        """Return why an answer ended."""
        if calls:
            return "function_call" if self.asked.functions else "tool_calls"
        return self.chat.reason(index)

    def choice(self, index: int) -> dict[str, Any]:
        """Return the object of a whole answer."""
        own, answer = self.chat.ended[index], self.chat.whole(index)
        content = answer.text if answer.text or not answer.calls else None
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        if answer.thought:
            message["reasoning_content"] = answer.thought
        if answer.calls:
            message |= self.called(answer.calls, numbered=False)
        return {
            "index": index,
            "message": message,
            "logprobs": self.logprobs(shown_scores(self.chat.served.lm.tokenizer, own)),
            "finish_reason": self.reason(index, answer.calls),
        }

    def logprobs(self, scores: Sequence[TokenScore]) -> dict[str, Any] | None:
        """Return the object of tokens, without the one that ends the answer."""
        if not self.asked.logprobs:
            return None
        said = self.chat.told_scores(scores)
        content = of_chat(self.chat.served.tokens, said, ids=bool(self.asked.return_token_ids))
        return {"content": content, "refusal": None}


class _Stream:
    """The events of a stream."""

    def __init__(self, chat: ChatAnswers, shared: dict[str, Any]) -> None:
        options = chat.asked.stream_options
        self._chat, self._objects = chat, _Told(chat)
        self._tells_usage = options is not None and options.include_usage
        self._shared = {**shared, "usage": None} if self._tells_usage else shared

    def opening(self) -> list[dict[str, Any]]:
        """Return the events that say who speaks."""
        return [self._event(index, {"role": "assistant", "content": ""}) for index in range(self._chat.asked.choices)]

    def tell(self, piece: AnswerPiece) -> list[dict[str, Any]]:
        """Return the events of what became known of one answer."""
        chat, index = self._chat, piece.index
        part, logprobs = chat.take(piece), self._objects.logprobs(piece.scores)
        events = self._thinks(index, part)
        if part.text or (logprobs and logprobs["content"]):
            events.append(self._event(index, {"content": part.text}, logprobs))
        if not piece.ended:
            return events
        rest = chat.rest(index)
        events += self._thinks(index, rest)
        if rest.text:
            events.append(self._event(index, {"content": rest.text}))
        if rest.calls:
            events.append(self._event(index, self._objects.called(rest.calls, numbered=True)))
        return [*events, self._event(index, {}, reason=self._objects.reason(index, rest.calls))]

    def _thinks(self, index: int, part: AnswerPart) -> list[dict[str, Any]]:
        return [self._event(index, {"reasoning_content": part.thought})] if part.thought else []

    def closing(self) -> list[dict[str, Any]]:
        """Return the event of what was read and written, where it is asked for."""
        usage = usage_of(self._chat.ended, self._chat.asked.choices)
        return [{**self._shared, "choices": [], "usage": usage}] if self._tells_usage else []

    def failing(self, error: ApiError) -> list[dict[str, Any]]:
        """Return the error."""
        return [error.body]

    def _event(
        self, index: int, delta: dict[str, Any], logprobs: dict[str, Any] | None = None, reason: str | None = None
    ) -> dict[str, Any]:
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return {**self._shared, "choices": [choice]}


def _told(call: ParsedToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": id_of(call), "type": "function", "function": function}
