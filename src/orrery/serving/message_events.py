"""A message of Anthropic's interface while it comes: its blocks, and the events that tell of them."""

import json
from typing import Any, final

from orrery.serving.answers import AnswerPiece
from orrery.serving.chat_answers import AnswerPart, ChatAnswers, id_of
from orrery.serving.errors import MESSAGES, ApiError
from orrery.serving.requests import stopped_by
from orrery.serving.usage import places_of
from orrery.text.chat.calls import ParsedToolCall

Event = dict[str, Any]
REASONS = {"end": "end_turn", "stop": "stop_sequence", "length": "max_tokens"}
"""Anthropic's names of the reasons for which an answer ends; another is the end of the context."""
_BEGUN: dict[str, Event] = {
    "text": {"type": "text", "text": ""},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
}
"""The blocks that grow, as they begin."""


@final
class MessageEvents:
    """The one answer to a conversation, block by block: reasoning, a text, calls.

    Args:
        chat: the answer.
        id: what names the message.
        model: what the client calls the model.
        most: the most tokens that were asked for.
    """

    def __init__(self, chat: ChatAnswers, id: str, model: str, most: int) -> None:
        self._chat, self._most = chat, most
        self._head = {"id": f"msg_{id}", "type": "message", "role": "assistant", "model": model}
        self._blocks: list[Event] = []
        self._open = False

    def opening(self) -> list[Event]:
        """Return the event of a message that begins."""
        read = places_of(self._chat.prepared.requests[0].prompt)
        usage = {"input_tokens": read, "output_tokens": 0}
        begun: Event = {**self._head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        return [{"type": "message_start", "message": begun}]

    def tell(self, piece: AnswerPiece) -> list[Event]:
        """Return the events of what became known of the answer."""
        events = self._said(self._chat.take(piece))
        if piece.ended:
            rest = self._chat.rest(piece.index)
            events += [*self._said(rest), *self._close()]
            for call in rest.calls:
                events += self._called(call)
        return events

    def closing(self) -> list[Event]:
        """Return the events of a message that has ended."""
        ended = self.whole()
        delta = {name: ended[name] for name in ("stop_reason", "stop_sequence")}
        return [{"type": "message_delta", "delta": delta, "usage": ended["usage"]}, {"type": "message_stop"}]

    def failing(self, error: ApiError) -> list[Event]:
        """Return the error."""
        return [error.told(MESSAGES)]

    def whole(self) -> dict[str, Any]:
        """Return the message, once it has ended."""
        own = self._chat.ended[0]
        reason = own.result().finish_reason
        said = REASONS.get(reason, "model_context_window_exceeded")
        if reason == "length" and len(own.written) < self._most:
            said = "model_context_window_exceeded"
        if any(block["type"] == "tool_use" for block in self._blocks):
            said = "tool_use"
        stop = stopped_by(self._chat.served, own) if said == "stop_sequence" else None
        usage = {
            "input_tokens": places_of(own.request.prompt) - own.reused,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": own.reused,
            "output_tokens": len(own.written),
        }
        return {**self._head, "content": self._blocks, "stop_reason": said, "stop_sequence": stop, "usage": usage}

    def _said(self, said: AnswerPart) -> list[Event]:
        return [*self._grow("thinking", said.thought), *self._grow("text", said.text)]

    def _grow(self, kind: str, text: str) -> list[Event]:
        """Add to the block of a kind, which is opened unless it is open."""
        if not text:
            return []
        events: list[Event] = []
        if not self._open or self._blocks[-1]["type"] != kind:
            events += [*self._close(), *self._begin(dict(_BEGUN[kind]))]
            self._open = True
        self._blocks[-1][kind] += text
        return [*events, self._delta({"type": f"{kind}_delta", kind: text})]

    def _begin(self, block: Event) -> list[Event]:
        self._blocks.append(block)
        return [{"type": "content_block_start", "index": len(self._blocks) - 1, "content_block": dict(block)}]

    def _delta(self, delta: Event) -> Event:
        return {"type": "content_block_delta", "index": len(self._blocks) - 1, "delta": delta}

    def _close(self) -> list[Event]:
        """End the block that is open."""
        was, self._open = self._open, False
        return [{"type": "content_block_stop", "index": len(self._blocks) - 1}] if was else []

    def _called(self, call: ParsedToolCall) -> list[Event]:
        events = self._begin({"type": "tool_use", "id": id_of(call), "name": call.name, "input": {}})
        events.append(self._delta({"type": "input_json_delta", "partial_json": call.arguments}))
        self._blocks[-1]["input"] = json.loads(call.arguments)
        self._open = True
        return [*events, *self._close()]
