"""From a conversation to what the engine takes: the template's ids, and what the answer must be."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orrery.errors import OrreryError, UsageError
from orrery.generation.requests import Request
from orrery.language_model.guides import Demands
from orrery.serving import requests
from orrery.serving.call_schema import call_schema
from orrery.serving.errors import ApiError, api_error
from orrery.serving.fitting import fitted
from orrery.serving.old_functions import with_tool_calls
from orrery.serving.pictures import picture_of, refuse_pictures
from orrery.serving.schema.chat import ChatRequest, Message
from orrery.serving.served import Served
from orrery.serving.thinking import grades, thinking
from orrery.text.chat.calls import MARKS, with_objects
from orrery.text.chat.channels import MARKS as CHANNEL_MARKS
from orrery.text.chat.channels import has_channels
from orrery.text.chat.reasoning import Reasoning, reasoning_marks


@dataclass(frozen=True)
class Terms:
    """What interfaces other than OpenAI's chats ask for beside the fields of a chat.

    Attributes:
        context: the most tokens of prompt and answer together, where that is less than the model's.
        usual: the most tokens of an answer, which may end sooner for want of room.
        cuts: the oldest turns are left out where not all of them fit.
        think: whether, or how much, to reason; as ``reasoning_effort``, which counts before it.
        unsaid: the ``reasoning_effort`` that asks for no more than none does, of a template that knows no grades.
        apart: reasoning is told apart from what is said.
    """

    context: int | None = None
    usual: int | None = None
    cuts: bool = False
    think: bool | str | None = None
    unsaid: str | None = None
    apart: bool = False


PLAIN = Terms()


@dataclass(frozen=True)
class PreparedConversation:
    """A conversation, ready to be answered.

    Attributes:
        asked: what the client sent.
        requests: one an answer.
        marks: control tokens that are read in an answer, with their spellings: decoding would leave them out.
        ends: the tokens that end an answer.
        reasoning: how the answer tells its reasoning, where that is told apart.
        channels: whether the answer comes in channels, as gpt-oss writes it.
    """

    asked: ChatRequest
    requests: list[Request]
    marks: dict[int, str]
    ends: frozenset[int]
    reasoning: Reasoning | None = None
    channels: bool = False

    @property
    def functions(self) -> dict[str, dict[str, Any] | None]:
        """The functions that may be called, with their parameters."""
        return {tool.function.name: tool.function.parameters for tool in self.asked.used_tools}


def prepare(served: Served, request: ChatRequest, terms: Terms = PLAIN) -> PreparedConversation:
    """Return the requests for the engine, checked.

    Raises:
        ApiError: a conversation that the template cannot say, that is too long, or that would forge a control token.
    """
    requests.check_cost(served, [1], request.choices, 0)
    if served.pictures is not None:
        return _about_a_picture(served, request, terms)
    ids = read(served, request, terms)
    ids = requests.with_prefix(served, ids, request.prefix)
    return continuing(served, request, ids, served.template.end, terms, "messages")


def _about_a_picture(served: Served, request: ChatRequest, terms: Terms) -> PreparedConversation:
    """Return the requests for the engine that describe the one picture of a conversation; errors as in ``prepare``."""
    thinking("", _think("", request, terms) or None)
    if request.prefix:
        requests.with_prefix(served, [], request.prefix)
    row = picture_of(served, request)
    return continuing(served, request, row, frozenset(), Terms(terms.context, terms.usual), "messages")


def continuing(
    served: Served, request: ChatRequest, ids: Sequence[int], end: frozenset[int], terms: Terms, param: str
) -> PreparedConversation:
    """Return the requests for the engine that continue a row of ids as a chat asks; errors as in ``prepare``.

    Args:
        served: the model.
        request: how to draw, what to demand, and how many answers there are.
        ids: what the model reads.
        end: tokens that end the answer, beside the model's own.
        terms: what is asked for besides.
        param: the field that the ids come from.
    """
    rest = None if terms.context is None else terms.context - len(ids)
    if rest is not None and rest < (request.longest or 1):
        raise requests.too_long(served, len(ids), request.longest or 1, param, context=terms.context)
    usual = min((most for most in (terms.usual, rest) if most is not None), default=None)
    longest = requests.longest_answer(served, len(ids), request.longest, usual, param)
    requests.check_cost(served, [len(ids)], request.choices, longest)
    limits = requests.limits_for(served, request, longest, end, _demands(request))
    scores = (request.top_logprobs or 0) if request.logprobs else None
    adapter = served.adapter_of(request.model)
    one = Request(ids, limits, requests.sampler_for(served, request), scores=scores, adapter=adapter)
    reasoning = _reasoning(served, ids) if terms.apart and not request.has_form else None
    channels = not request.has_form and in_channels(served)
    read = (*MARKS, *((reasoning.opening, reasoning.closing) if reasoning else ()), *(CHANNEL_MARKS * channels))
    tokenizer = served.lm.tokenizer
    marks = {id: mark for mark in read if (id := tokenizer.id(mark)) is not None and id in tokenizer.control}
    own = requests.numbered(one, request.seed, request.choices)
    return PreparedConversation(request, own, marks, frozenset(limits.end), reasoning, channels)


def in_channels(served: Served) -> bool:
    """Say whether the model's answers to conversations come in channels."""
    try:
        return has_channels(served.template.source)
    except ApiError:  # it has no template
        return False


def read(served: Served, request: ChatRequest, terms: Terms) -> list[int]:
    """Return the ids of a conversation, without its oldest turns where they do not fit and may be left out.

    Raises:
        ApiError: it cannot be said in the model's template.
    """
    tools = [tool.model_dump(exclude_none=True) for tool in request.used_tools]
    think = _think(served.template.source, request, terms)

    def of(messages: Sequence[Message]) -> list[int]:
        return rendered(served, messages, tools, request.tools_field, think, request.chat_template_kwargs)

    if not terms.cuts:
        return of(request.messages)
    context = min(served.lm.context, terms.context or served.lm.context)
    return fitted(of, request.messages, context - (request.longest or 1) - len(request.prefix))


def _think(source: str, request: ChatRequest, terms: Terms) -> bool | str | None:
    """Return how much is to be reasoned, as `thinking` takes it."""
    effort = request.reasoning_effort
    return terms.think if effort is None or (effort == terms.unsaid and not grades(source)) else effort


def _reasoning(served: Served, ids: Sequence[int]) -> Reasoning | None:
    """Return how the answer behind a prompt tells its reasoning."""
    marks = reasoning_marks(served.template.source)
    if marks is None:
        return None
    last = served.lm.tokenizer.decode([id for id in ids[-16:] if id < served.lm.tokenizer.size], special=True)
    return Reasoning(*marks, begun=last.rstrip().endswith(marks[0]))


def rendered(
    served: Served,
    messages: Sequence[Message],
    tools: Sequence[dict[str, Any]] = (),
    param: str = "tools",
    think: bool | str | None = None,
    more: Mapping[str, Any] | None = None,
) -> list[int]:
    """Return the ids of a conversation, up to where the next answer begins; ``more`` are variables of its template.

    Raises:
        ApiError: it cannot be said in the model's template.
    """
    refuse_pictures(messages)
    said = with_objects(with_tool_calls([_plain(message) for message in messages]))
    size = sum(len(text.encode()) for message in said for text in (message.get("content") or "", str(message)))
    requests.check_size(served, size // 2, "messages")
    variables: dict[str, Any] = {**thinking(served.template.source, think), **(more or {}), "tools": list(tools)}
    try:
        return served.template.render(said, prompt=True, **variables).ids
    except OrreryError as error:
        raise api_error(error, param if isinstance(error, UsageError) and tools else "messages") from None


def _plain(message: Message) -> dict[str, Any]:
    """Return a message as templates read it: its parts as one text."""
    plain = message.model_dump(exclude_none=True)
    if isinstance(message.content, list):
        plain["content"] = "".join(part.text or "" for part in message.content)
    return plain


def _demands(request: ChatRequest) -> Demands:
    """Return what the answer must be: a call where one is forced, else as response_format says.

    Raises:
        ApiError: a form that no answer is held to.
    """
    form = {} if request.response_format is None else request.response_format.demanded
    if request.forced:
        form = {"json_schema": call_schema({one.name: one.parameters for one in request.forced})}
    return requests.demands_of(request.bad_words, form, request.tools_field if request.forced else "response_format")
