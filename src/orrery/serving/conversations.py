"""From a conversation to what the engine takes: the template's ids, and what the answer must be."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from orrery.errors import OrreryError, UsageError
from orrery.generation.requests import Request
from orrery.language_model.guides import Demands
from orrery.serving import requests
from orrery.serving.call_schema import call_schema
from orrery.serving.errors import api_error
from orrery.serving.old_functions import with_tool_calls
from orrery.serving.schema.chat import ChatRequest, Message
from orrery.serving.served import Served
from orrery.text.chat.calls import MARKS, with_objects


@dataclass(frozen=True)
class Prepared:
    """A conversation, ready to be answered.

    Attributes:
        asked: what the client sent.
        requests: one an answer.
        marks: control tokens that a call begins with, with their spellings: decoding would leave them out.
        ends: the tokens that end an answer.
    """

    asked: ChatRequest
    requests: list[Request]
    marks: dict[int, str]
    ends: frozenset[int]

    @property
    def names(self) -> list[str]:
        """The functions that may be called."""
        return [tool.function.name for tool in self.asked.used_tools]


def prepare(served: Served, asked: ChatRequest) -> Prepared:
    """Return the requests for the engine, checked.

    Raises:
        ApiError: a conversation that the template cannot say, that is too long, or that would forge a control token.
    """
    requests.check_cost(served, [1], asked.choices, 0)
    tools = [tool.model_dump(exclude_none=True) for tool in asked.used_tools]
    ids = rendered(served, asked.messages, tools, asked.tools_field)
    ids = requests.with_prefix(served, ids, asked.prefix)
    longest = requests.longest_answer(served, len(ids), asked.longest, None, "messages")
    requests.check_cost(served, [len(ids)], asked.choices, longest)
    limits = requests.limits_for(served, asked, longest, served.template.end, _demands(asked))
    scores = (asked.top_logprobs or 0) if asked.logprobs else None
    adapter = served.adapter_of(asked.model)
    one = Request(ids, limits, requests.sampler_for(served, asked), scores=scores, adapter=adapter)
    tokenizer = served.lm.tokenizer
    marks = {id: mark for mark in MARKS if (id := tokenizer.id(mark)) is not None and id in tokenizer.control}
    return Prepared(asked, requests.numbered(one, asked.seed, asked.choices), marks, frozenset(limits.end))


def rendered(
    served: Served, messages: Sequence[Message], tools: Sequence[dict[str, Any]] = (), param: str = "tools"
) -> list[int]:
    """Return the ids of a conversation, up to where the next answer begins.

    Raises:
        ApiError: it cannot be said in the model's template.
    """
    said = with_objects(with_tool_calls([_plain(message) for message in messages]))
    size = sum(len(text.encode()) for message in said for text in (message.get("content") or "", str(message)))
    requests.check_size(served, size // 2, "messages")
    variables: dict[str, Any] = {"tools": list(tools)} if tools else {}
    try:
        return served.template.render(said, prompt=True, **variables).ids
    except OrreryError as error:
        raise api_error(error, param if isinstance(error, UsageError) and tools else "messages") from None


def _plain(message: Message) -> dict[str, Any]:
    """Return a message as templates read it: its parts as one text."""
    found = message.model_dump(exclude_none=True)
    if isinstance(message.content, list):
        found["content"] = "".join(part.text or "" for part in message.content)
    return found


def _demands(asked: ChatRequest) -> Demands:
    """Return what the answer must be: a call where one is forced, else as response_format says.

    Raises:
        ApiError: a form that no answer is held to.
    """
    try:
        return _demanded(asked)
    except OrreryError as error:
        raise api_error(error, asked.tools_field if asked.forced else "response_format") from None


def _demanded(asked: ChatRequest) -> Demands:
    words, form = asked.bad_words or (), asked.response_format
    if asked.forced:
        return Demands.of(words, json_schema=call_schema({one.name: one.parameters for one in asked.forced}))
    if form is None or form.type == "text":
        return Demands.of(words)
    schema = form.json_schema.schema_ if form.json_schema is not None else None
    return Demands.of(words, json_schema=schema or {})
