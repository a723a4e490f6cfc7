"""What Ollama's clients are answered: objects that grow, and the last one with its counts and durations."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, final

from orrery.serving.answers import AnswerPiece, Answers
from orrery.serving.chat_answers import AnswerPart, ChatAnswers, id_of
from orrery.serving.errors import ApiError
from orrery.serving.logprobs import of_chat
from orrery.serving.usage import places_of
from orrery.text.chat.calls import ParsedToolCall

Shape = Callable[[AnswerPart], dict[str, Any]]
"""From a part of an answer to the fields that say it."""


def now() -> str:
    """Return this moment as Ollama writes it."""
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def as_message(said: AnswerPart) -> dict[str, Any]:
    """Return what is said as the message of a chat."""
    message: dict[str, Any] = {"role": "assistant", "content": said.text}
    if said.thought:
        message["thinking"] = said.thought
    if said.calls:
        message["tool_calls"] = [_called(call, index) for index, call in enumerate(said.calls)]
    return {"message": message}


def as_response(said: AnswerPart) -> dict[str, Any]:
    """Return what is said as the response to a prompt."""
    return {"response": said.text} | ({"thinking": said.thought} if said.thought else {})


def _called(call: ParsedToolCall, index: int) -> dict[str, Any]:
    function = {"index": index, "name": call.name, "arguments": json.loads(call.arguments)}
    return {"id": id_of(call), "function": function}


@final
class OllamaAnswer:
    """The one answer to a request, object by object.

    Args:
        chat: the answer.
        answers: what knows how long it took.
        name: what the client calls the model.
        shape: how what is said is told.
        tells_context: whether the ids of prompt and answer are told at the end.
    """

    def __init__(self, chat: ChatAnswers, answers: Answers, name: str, shape: Shape, tells_context: bool) -> None:
        self._chat, self._answers, self._name, self._shape = chat, answers, name, shape
        self._tells_context = tells_context
        self._scores: list[dict[str, Any]] = []

    def opening(self) -> list[dict[str, Any]]:
        """Return nothing: nobody speaks before there is something to say."""
        return []

    def tell(self, piece: AnswerPiece) -> list[dict[str, Any]]:
        """Return the objects of what became known of the answer."""
        scores = self._told(piece)
        self._scores += scores
        objects = [self._object(self._chat.take(piece), scores)]
        if piece.ended:
            objects.append(self._object(self._chat.rest(piece.index), []))
        return [one for one in objects if one is not None]

    def closing(self) -> list[dict[str, Any]]:
        """Return the last object."""
        return [self._last(AnswerPart(), [])]

    def failing(self, error: ApiError) -> list[dict[str, Any]]:
        """Return the error."""
        return [{"error": error.text}]

    def whole(self) -> dict[str, Any]:
        """Return the answer as one object, once it has ended."""
        return self._last(self._chat.whole(0), self._scores)

    def _told(self, piece: AnswerPiece) -> list[dict[str, Any]]:
        """Return the log probabilities of tokens, where they are asked for."""
        if not self._chat.asked.logprobs:
            return []
        return of_chat(self._chat.served.tokens, self._chat.told_scores(piece.scores))

    def _object(self, said: AnswerPart, scores: list[dict[str, Any]]) -> dict[str, Any] | None:
        if said == AnswerPart() and not scores:
            return None
        return {**self._head(said, scores), "done": False}

    def _head(self, said: AnswerPart, scores: list[dict[str, Any]]) -> dict[str, Any]:
        scored = {"logprobs": scores} if scores else {}
        return {"model": self._name, "created_at": now(), **self._shape(said), **scored}

    def _last(self, said: AnswerPart, scores: list[dict[str, Any]]) -> dict[str, Any]:
        own = self._chat.ended[0]
        first, end = (int(seconds * 1e9) for seconds in self._answers.seconds[0])
        ids = [*own.request.prompt, *own.written]
        return {
            **self._head(said, scores),
            "done": True,
            "done_reason": self._chat.reason(0),
            **({"context": ids} if self._tells_context else {}),
            "total_duration": end,
            "load_duration": 0,
            "prompt_eval_count": places_of(own.request.prompt),
            "prompt_eval_duration": first,
            "eval_count": len(own.written),
            "eval_duration": end - first,
        }
