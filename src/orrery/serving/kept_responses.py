"""Conversations that the next response goes on from by its id, as many as a bound lets be kept."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from orrery.serving.errors import ApiError
from orrery.serving.schema.chat import Message

MOST = 256
"""Responses that are kept."""
MOST_BYTES = 32 << 20
"""Bytes of their messages and objects together, as JSON."""


@dataclass(frozen=True)
class KeptResponse:
    """A response and what was said up to its end.

    Attributes:
        messages: the conversation, without instructions, which count for one response.
        response: the object that was answered.
        size: bytes of both as JSON.
    """

    messages: Sequence[Message]
    response: Mapping[str, Any]
    size: int


@final
class KeptResponses:
    """The last responses by their ids; the oldest go first."""

    def __init__(self) -> None:
        self._held: OrderedDict[str, KeptResponse] = OrderedDict()
        self._size = 0

    def keep(self, response: Mapping[str, Any], messages: Sequence[Message]) -> None:
        """Keep a response with its conversation."""
        texts = (*(message.model_dump_json(exclude_none=True) for message in messages), str(response))
        kept = KeptResponse(tuple(messages), response, sum(map(len, texts)))
        self._held[response["id"]] = kept
        self._size += kept.size
        while len(self._held) > MOST or (self._size > MOST_BYTES and self._held):
            self._size -= self._held.popitem(last=False)[1].size

    def find(self, id: str, param: str) -> KeptResponse:
        """Return a response.

        Raises:
            ApiError: it is not kept.
        """
        response = self._held.get(id)
        if response is None:
            reason = f"the response {id[:60]!r} is not kept; the last {MOST} are, unless store is false: send its items"
            raise ApiError(404, reason, param=param, code="response_not_found")
        return response

    def item(self, id: str, param: str) -> Mapping[str, Any]:
        """Return an item of a response's output by its own id; errors as in ``find``."""
        items = (item for kept in reversed(self._held.values()) for item in kept.response["output"])
        found: Mapping[str, Any] | None = next((item for item in items if item["id"] == id), None)
        if found is None:
            reason = f"the item {id[:60]!r} is not kept; those of the last {MOST} responses are: send it whole"
            raise ApiError(404, reason, param=param, code="item_not_found")
        return found

    def remove(self, id: str) -> None:
        """Forget a response; errors as in ``find``."""
        self._size -= self.find(id, "response_id").size
        del self._held[id]
