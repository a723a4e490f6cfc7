"""``POST /v1/chat/completions``: conversations and their next message."""

import secrets
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from orrery.generation.requests import Answering, TokenScore
from orrery.serving import requests
from orrery.serving.answer_head import head
from orrery.serving.answers import GoneError, Piece, begun
from orrery.serving.body import StrictRoute
from orrery.serving.conversations import Prepared, prepare
from orrery.serving.errors import AsciiJson
from orrery.serving.events import EventStream
from orrery.serving.held_scores import shown_scores
from orrery.serving.logprobs import of_chat
from orrery.serving.old_functions import told
from orrery.serving.schema.chat import ChatCompletion, ChatRequest
from orrery.serving.schema.errors import FAILURES
from orrery.serving.served import Served, Serving
from orrery.serving.usage import usage_of
from orrery.text.chat.calls import Call, CallWatch

router = APIRouter(route_class=StrictRoute, tags=["chat"])


@router.post("/v1/chat/completions", response_model=ChatCompletion, responses=FAILURES)
async def chat_completions(asked: ChatRequest, served: Serving, http: HttpRequest) -> Response:
    """Answer a conversation; with ``stream`` as server-sent events."""
    prepared, answers = await begun(served, asked, prepare, stream=bool(asked.stream or asked.used_tools))
    chat = _Chat(served, prepared)
    if asked.stream:
        shared = head("chatcmpl", "chat.completion.chunk", served, asked.model, answers)
        stream = _Stream(chat, shared)
        return EventStream(answers, stream.tell, stream.opening(), stream.closing)
    try:
        async for pieces in answers.pieces(http.receive):
            for piece in pieces:
                chat.take(piece)
    except GoneError:
        return Response(status_code=499)
    shared = head("chatcmpl", "chat.completion", served, asked.model, answers)
    choices = [chat.choice(index) for index in range(asked.choices)]
    return AsciiJson({**shared, "choices": choices, "usage": usage_of(chat.ended, asked.choices)})


class _Chat:
    """The answers to one conversation while they come."""

    def __init__(self, served: Served, prepared: Prepared) -> None:
        self.served, self.prepared, self.asked = served, prepared, prepared.asked
        self.ended: dict[int, Answering] = {}
        self.watches = {index: CallWatch(prepared.names) for index in range(prepared.asked.choices)}

    def take(self, piece: Piece) -> str:
        """Take what became known of an answer; return what of it is said for sure, by the model itself."""
        if piece.ended:
            self.ended[piece.index] = piece.answering
        if not self.asked.used_tools:
            return piece.text
        marks = self.prepared.marks
        text = "".join(marks.get(token, "") + text for token, text in piece.parts)
        said = self.watches[piece.index].push(text)
        return "" if self.asked.forced else said

    def rest(self, index: int) -> tuple[str, list[Call]]:
        """Return what an answer says beside what ``take`` has returned, and its calls."""
        if not self.asked.used_tools:
            return "", []
        said, calls = self.watches[index].finish()
        return said, self._allowed(calls)

    def called(self, calls: Sequence[Call], numbered: bool) -> dict[str, Any]:
        """Return the field that tells calls, in the form in which the client sent what may be called."""
        if self.asked.functions:
            return {"function_call": told(calls[0])}
        numbers: list[dict[str, Any]] = [{"index": number} if numbered else {} for number in range(len(calls))]
        return {"tool_calls": [{**number, **_told(call)} for number, call in zip(numbers, calls, strict=True)]}

    def reason(self, index: int, calls: Sequence[Call]) -> str:
        """Return why an answer ended."""
        if calls:
            return "function_call" if self.asked.functions else "tool_calls"
        return requests.FINISH[self.ended[index].result().finish_reason]

    def choice(self, index: int) -> dict[str, Any]:
        """Return the object of a whole answer."""
        own = self.ended[index]
        said, calls = self._whole(index)
        message: dict[str, Any] = {"role": "assistant", "content": said if said or not calls else None, "refusal": None}
        if calls:
            message |= self.called(calls, numbered=False)
        return {
            "index": index,
            "message": message,
            "logprobs": self.logprobs(shown_scores(self.served.lm.tokenizer, own)),
            "finish_reason": self.reason(index, calls),
        }

    def logprobs(self, scores: Sequence[TokenScore]) -> dict[str, Any] | None:
        """Return the object of tokens, without the one that ends the answer."""
        if not self.asked.logprobs:
            return None
        said = [score for score in scores if score.token not in self.prepared.ends]
        content = of_chat(self.served.tokens, said, ids=bool(self.asked.return_token_ids))
        return {"content": content, "refusal": None}

    def _whole(self, index: int) -> tuple[str, list[Call]]:
        if not self.asked.used_tools:
            return self.ended[index].result().text, []
        said, calls = self.watches[index].whole()
        return said, self._allowed(calls)

    def _allowed(self, calls: list[Call]) -> list[Call]:
        """Return the calls that the client can take: one, where it asked for one or knows the old form alone."""
        return calls[:1] if self.asked.parallel_tool_calls is False or self.asked.functions else calls


class _Stream:
    """The events of a stream."""

    def __init__(self, chat: _Chat, shared: dict[str, Any]) -> None:
        options = chat.asked.stream_options
        self._chat = chat
        self._tells_usage = options is not None and options.include_usage
        self._shared = {**shared, "usage": None} if self._tells_usage else shared

    def opening(self) -> list[dict[str, Any]]:
        """Return the events that say who speaks."""
        return [self._event(index, {"role": "assistant", "content": ""}) for index in range(self._chat.asked.choices)]

    def tell(self, piece: Piece) -> list[dict[str, Any]]:
        """Return the events of what became known of one answer."""
        chat, index = self._chat, piece.index
        said, logprobs = chat.take(piece), chat.logprobs(piece.scores)
        found = [self._event(index, {"content": said}, logprobs)] if said or (logprobs and logprobs["content"]) else []
        if not piece.ended:
            return found
        rest, calls = chat.rest(index)
        if rest:
            found.append(self._event(index, {"content": rest}))
        if calls:
            found.append(self._event(index, chat.called(calls, numbered=True)))
        return [*found, self._event(index, {}, reason=chat.reason(index, calls))]

    def closing(self) -> list[dict[str, Any]]:
        """Return the event of what was read and written, where it is asked for."""
        usage = usage_of(self._chat.ended, self._chat.asked.choices)
        return [{**self._shared, "choices": [], "usage": usage}] if self._tells_usage else []

    def _event(
        self, index: int, delta: dict[str, Any], logprobs: dict[str, Any] | None = None, reason: str | None = None
    ) -> dict[str, Any]:
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
        return {**self._shared, "choices": [choice]}


def _told(call: Call) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": f"call_{secrets.token_hex(12)}", "type": "function", "function": function}
