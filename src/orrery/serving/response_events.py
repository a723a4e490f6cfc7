"""A response while it comes: its items, and the events that tell of them."""

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from orrery.generation.requests import TokenScore
from orrery.serving.answers import AnswerPiece
from orrery.serving.chat_answers import AnswerPart, ChatAnswers, id_of
from orrery.serving.errors import ApiError
from orrery.serving.logprobs import of_chat
from orrery.serving.usage import places_of
from orrery.text.chat.calls import ParsedToolCall

Event = dict[str, Any]


@dataclass(frozen=True)
class _Kind:
    """A kind of item that has one part of text.

    Attributes:
        item: its type.
        part: the type of its part.
        prefix: what its ids begin with.
        fields: what it holds besides.
        scored: whether the log probabilities of its tokens are told.
    """

    item: str
    part: str
    prefix: str
    fields: Mapping[str, Any]
    scored: bool


_MESSAGE = _Kind("message", "output_text", "msg", {"role": "assistant"}, scored=True)
_REASONING = _Kind("reasoning", "reasoning_text", "rs", {"summary": []}, scored=False)


@final
class OutputEvents:
    """The one answer of a response, item by item: reasoning, a message, calls.

    Args:
        chat: the answer.
        response: the fields of the response that are known from its beginning.
        scored: whether the log probabilities of tokens are told.

    Attributes:
        items: the items that are whole.
    """

    def __init__(self, chat: ChatAnswers, response: dict[str, Any], scored: bool) -> None:
        self._chat, self._response, self._scored = chat, response, scored
        self.items: list[dict[str, Any]] = []
        self._open: _Item | None = None
        self._number = 0

    def opening(self) -> list[Event]:
        """Return the events of a response that begins."""
        begun = self._shaped("in_progress", [])
        return [self._event("response.created", response=begun), self._event("response.in_progress", response=begun)]

    def tell(self, piece: AnswerPiece) -> list[Event]:
        """Return the events of what became known of the answer."""
        events = self._said(self._chat.take(piece), piece.scores)
        if not piece.ended:
            return events
        rest = self._chat.rest(piece.index)
        events += self._said(rest, [])
        if not self._texts and not rest.calls:
            events += self._in(_MESSAGE)
        cut = self._chat.reason(piece.index) == "length" and not rest.calls
        events += self._close("incomplete" if cut else "completed")
        for call in rest.calls:
            events += self._called(call)
        return events

    def closing(self) -> list[Event]:
        """Return the event of the whole response."""
        response = self.whole()
        return [self._event(f"response.{response['status']}", response=response)]

    def failing(self, error: ApiError) -> list[Event]:
        """Return the event of a response that came to no end."""
        code = "rate_limit_exceeded" if error.status_code == 429 else "server_error"
        failed = self._shaped("failed", self.items) | {"error": {"code": code, "message": error.text}}
        return [self._event("response.failed", response=failed)]

    def whole(self) -> dict[str, Any]:
        """Return the response once its answer has ended."""
        own = self._chat.ended[0]
        cut = self._chat.reason(0) == "length" and not any(item["type"] == "function_call" for item in self.items)
        response = self._shaped("incomplete" if cut else "completed", self.items)
        read, output_tokens = places_of(own.request.prompt), len(own.written)
        usage = {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": own.reused, "cache_write_tokens": 0},
            "output_tokens": output_tokens,
            "output_tokens_details": {"reasoning_tokens": self._chat.reasoned[0]},
            "total_tokens": read + output_tokens,
        }
        details = {"reason": "max_output_tokens"} if cut else None
        return response | {"incomplete_details": details, "usage": usage, "completed_at": None if cut else time.time()}

    @property
    def _texts(self) -> bool:
        """Whether something is said, whole or not yet."""
        open = self._open is not None and self._open.kind is _MESSAGE
        return open or any(item["type"] == "message" for item in self.items)

    def _said(self, said: AnswerPart, scores: Sequence[TokenScore]) -> list[Event]:
        events = []
        if said.thought:
            events += self._in(_REASONING)
            events += self._grow(said.thought, [])
        logprobs = self._scores(scores)
        if said.text or (logprobs and not said.thought):
            events += self._in(_MESSAGE)
            events += self._grow(said.text, logprobs)
        return events

    def _scores(self, scores: Sequence[TokenScore]) -> list[dict[str, Any]]:
        if not self._scored:
            return []
        return of_chat(self._chat.served.tokens, self._chat.told_scores(scores))

    def _in(self, kind: _Kind) -> list[Event]:
        """Open an item of a kind, unless it is open."""
        if self._open is not None and self._open.kind is kind:
            return []
        events = self._close("completed")
        self._open = item = _Item(kind, len(self.items))
        part = {"item_id": item.id, "output_index": item.place, "content_index": 0, "part": item.part()}
        return [
            *events,
            self._event("response.output_item.added", output_index=item.place, item=item.begun()),
            self._event("response.content_part.added", **part),
        ]

    def _grow(self, text: str, scores: list[dict[str, Any]]) -> list[Event]:
        item = self._open
        assert item is not None
        item.text += text
        item.scores += scores
        more = {"logprobs": scores} if item.kind.scored else {}
        return [self._event(f"response.{item.kind.part}.delta", **item.where(), delta=text, **more)]

    def _close(self, status: str) -> list[Event]:
        """End the item that is open."""
        item, self._open = self._open, None
        if item is None:
            return []
        ended = item.whole(status)
        self.items.append(ended)
        more = {"logprobs": item.scores} if item.kind.scored else {}
        return [
            self._event(f"response.{item.kind.part}.done", **item.where(), text=item.text, **more),
            self._event("response.content_part.done", **item.where(), part=item.part()),
            self._event("response.output_item.done", output_index=item.place, item=ended),
        ]

    def _called(self, call: ParsedToolCall) -> list[Event]:
        ids = {"id": f"fc_{secrets.token_hex(12)}", "call_id": id_of(call)}
        item = {"type": "function_call", **ids, "name": call.name}
        begun = {**item, "arguments": "", "status": "in_progress"}
        ended = {**item, "arguments": call.arguments, "status": "completed"}
        place = len(self.items)
        self.items.append(ended)
        where = {"item_id": ids["id"], "output_index": place}
        about, name = "response.function_call_arguments", {"name": call.name}
        return [
            self._event("response.output_item.added", output_index=place, item=begun),
            self._event(f"{about}.delta", **where, delta=call.arguments),
            self._event(f"{about}.done", **where, **name, arguments=call.arguments),
            self._event("response.output_item.done", output_index=place, item=ended),
        ]

    def _shaped(self, status: str, items: Sequence[dict[str, Any]]) -> dict[str, Any]:
        return {**self._response, "status": status, "output": list(items)}

    def _event(self, kind: str, **fields: Any) -> Event:
        number, self._number = self._number, self._number + 1
        return {"type": kind, "sequence_number": number, **fields}


@final
class _Item:
    """An item that grows: one part of text."""

    def __init__(self, kind: _Kind, place: int) -> None:
        self.kind, self.place, self.id = kind, place, f"{kind.prefix}_{secrets.token_hex(12)}"
        self.text = ""
        self.scores: list[dict[str, Any]] = []

    def where(self) -> dict[str, Any]:
        """Return the fields of an event that say where it belongs."""
        return {"item_id": self.id, "output_index": self.place, "content_index": 0}

    def part(self) -> dict[str, Any]:
        """Return its part as it is now."""
        scored = {"annotations": [], "logprobs": self.scores} if self.kind.scored else {}
        return {"type": self.kind.part, "text": self.text, **scored}

    def begun(self) -> dict[str, Any]:
        """Return the item without its part."""
        return {"id": self.id, "type": self.kind.item, **self.kind.fields, "status": "in_progress", "content": []}

    def whole(self, status: str) -> dict[str, Any]:
        """Return the item with its part."""
        return {**self.begun(), "status": status, "content": [self.part()]}
