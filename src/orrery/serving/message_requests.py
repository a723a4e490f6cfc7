"""Requests of Anthropic's interface as those of a chat."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orrery.serving.body import checked
from orrery.serving.conversations import Terms
from orrery.serving.errors import ApiError, naming
from orrery.serving.requests import check_size, too_long
from orrery.serving.schema.chat import ChatRequest
from orrery.serving.schema.messages import AnthropicChoice, AnyBlock, Block, Conversing, Source, Turn
from orrery.serving.schema.sampling import SamplingFields
from orrery.serving.served import Served

FIELDS = {
    "stop": "stop_sequences",
    "reasoning_effort": "thinking",
    "response_format": "output_config.format",
    "max_completion_tokens": "max_tokens",
}
"""From the fields of a chat to those of this interface, for errors."""

USUAL_EFFORT = "high"
"""The ``effort`` with which Anthropic's service answers where a client says none; some clients always send it."""


@dataclass(frozen=True)
class AskedChat:
    """A conversation of this interface as a chat.

    Attributes:
        chat: it, without the message that the answer begins with.
        begun: what that message says.
        names: from the fields of the chat to those of the client, for errors.
    """

    chat: ChatRequest
    begun: str
    names: Mapping[str, str]

    def beginning(self, served: Served) -> ChatRequest:
        """Return the chat with the ids that its answer begins with; a long text takes its time.

        Raises:
            ApiError: it is longer than the context.
        """
        if not self.begun:
            return self.chat
        check_size(served, len(self.begun.encode()), "messages")
        ids = served.lm.tokenizer.continuing.encode(self.begun)
        if len(ids) > served.lm.context:
            raise too_long(served, len(ids), 0, "messages")
        return self.chat.model_copy(update={"prefix_ids": [*ids, *self.chat.prefix]})


def chat_of(request: Conversing) -> AskedChat:
    """Return the chat that is asked for; what the last message of the assistant says is what the answer begins with.

    Raises:
        ApiError: a block that cannot be read, or fields that do not go together.
    """
    turns, begun = list(request.messages), ""
    last = f"messages[{len(turns) - 1}]"
    if turns[-1].role == "assistant" and len(turns) > 1:
        begun = _text(turns.pop().content, f"{last}.content")
    config = request.output_config
    form = None if config is None or config.format is None else config.format.schema_
    effort = None if config is None else config.effort
    has_tools = request.tools and (request.tool_choice is None or request.tool_choice.type != "none")
    if begun and (form is not None or has_tools):
        reason = "an answer that begins with the last message of the assistant has no tools and no output_config.format"
        raise ApiError(400, f"{reason}: send the message of the user last, or leave them out", param=last)
    said, names = _said(request, turns)
    own = {
        **{name: getattr(request, name) for name in SamplingFields.model_fields},
        "messages": said,
        "stop": request.stop_sequences,
        "chat_template_kwargs": request.chat_template_kwargs,
        "reasoning_effort": effort,
        **({} if form is None else {"response_format": {"type": "json_schema", "json_schema": {"schema": form}}}),
        **_tools(request),
    }
    graded = {"reasoning_effort": "output_config.effort"} if effort is not None else {}
    names = {**FIELDS, **graded, **names, **({"prefix_ids": last} if begun else {})}
    with naming(names):
        return AskedChat(checked(ChatRequest, own), begun, names)


def _said(request: Conversing, turns: Sequence[Turn]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the messages of a chat, and from the place of each, and of its parts, to the client's."""
    said: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    if request.system:
        said.append({"role": "system", "content": _text(request.system, "system")})
        names["messages[0]"] = "system"
    called: dict[str, str] = {}
    for number, turn in enumerate(turns):
        where = f"messages[{number}]"
        blocks = [Block(type="text", text=turn.content)] if isinstance(turn.content, str) else turn.content
        if not blocks:
            raise ApiError(400, "it holds no block: send a text, or leave the message out", param=f"{where}.content")
        take = {"assistant": _assistant, "user": _user, "system": _system}[turn.role]
        for message, places in take(blocks, f"{where}.content", called):
            own = f"messages[{len(said)}]"
            names[own] = where
            names |= {f"{own}.content[{part}]": f"{where}.content[{place}]" for part, place in enumerate(places)}
            said.append(message)
    return said, names


def terms_of(request: Conversing) -> Terms:
    """Return what is asked for beside the fields of a chat; an answer ends where the context does in any case."""
    think = {"enabled": True, "disabled": False}.get(request.thinking.type) if request.thinking is not None else None
    return Terms(usual=request.max_tokens, think=think, unsaid=USUAL_EFFORT, apart=True)


def _tools(request: Conversing) -> dict[str, Any]:
    """Return the tools that may be called and the choice among them, as a chat says them."""
    choice = request.tool_choice or AnthropicChoice(type="auto")
    if choice.type == "tool" and choice.name is None:
        raise ApiError(400, "a choice of type tool names the tool", param="tool_choice.name")
    chosen: Any = {"auto": None, "any": "required", "none": "none"}.get(choice.type)
    if choice.type == "tool":
        chosen = {"type": "function", "function": {"name": choice.name}}
    functions = [
        {"name": one.name, "description": one.description, "parameters": one.input_schema, "strict": one.strict}
        for one in request.tools or ()
    ]
    return {
        "tools": [{"type": "function", "function": one} for one in functions] or None,
        "tool_choice": chosen,
        "parallel_tool_calls": not choice.disable_parallel_tool_use,
    }


Placed = tuple[dict[str, Any], list[int]]
"""A message, and of each of its parts the number of its block."""


def _assistant(blocks: Sequence[Block], where: str, called: dict[str, str]) -> list[Placed]:
    """Return what the assistant said as one message."""
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls = []
    for number, block in enumerate(blocks):
        if block.type == "tool_use":
            if block.id is None or block.name is None or block.input is None:
                raise ApiError(400, "a tool_use needs its id, name and input", param=f"{where}[{number}]")
            called[block.id] = block.name
            function = {"name": block.name, "arguments": json.dumps(block.input, ensure_ascii=False)}
            calls.append({"id": block.id, "type": "function", "function": function})
        elif block.type == "thinking" and block.thinking is not None:
            message["reasoning_content"] = message.get("reasoning_content", "") + block.thinking
        else:
            message["content"] = (message["content"] or "") + _text_of(block, f"{where}[{number}]")
    if calls:
        message["tool_calls"] = calls
    elif message["content"] is None:
        message["content"] = ""
    return [(message, [])]


def _system(blocks: Sequence[Block], where: str, called: dict[str, str]) -> list[Placed]:
    """Return what stands between turns for the model to know, as one message."""
    return [({"role": "system", "content": _text(blocks, where)}, [])]


def _user(blocks: Sequence[Block], where: str, called: dict[str, str]) -> list[Placed]:
    """Return what the user said, and what tools gave, each as a message."""
    messages: list[Placed] = []
    for number, block in enumerate(blocks):
        place = f"{where}[{number}]"
        if block.type == "tool_result":
            if block.tool_use_id not in called:
                raise ApiError(400, "no tool_use with this id stands before its result", param=f"{place}.tool_use_id")
            named = {"tool_call_id": block.tool_use_id, "name": called[block.tool_use_id]}
            given = _text(block.content or "", f"{place}.content")
            said = {"role": "tool", "content": f"Error: {given}" if block.is_error else given, **named}
            messages.append((said, [number]))
            continue
        if not messages or messages[-1][0]["role"] != "user":
            messages.append(({"role": "user", "content": []}, []))
        message, places = messages[-1]
        message["content"].append(_part(block, place))
        places.append(number)
    return messages


def _part(block: Block, where: str) -> dict[str, Any]:
    """Return a block of the user as a part of a chat's message."""
    source = block.source
    if block.type != "image" or not isinstance(source, Source):
        return {"type": "text", "text": _text_of(block, where)}
    held = source.type == "base64" and source.media_type is not None and source.data is not None
    if not held and (source.type != "url" or source.url is None):
        raise ApiError(400, "a picture comes as type base64 with media_type and data", param=f"{where}.source")
    address = f"data:{source.media_type};base64,{source.data}" if held else source.url
    return {"type": "image_url", "image_url": {"url": address}}


def _text(content: str | Sequence[AnyBlock] | None, where: str) -> str:
    """Return what blocks of text say."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(_text_of(block, f"{where}[{number}]") for number, block in enumerate(content))


def _text_of(block: AnyBlock, where: str) -> str:
    if block.type == "text" and block.text is None:
        raise ApiError(400, "a block of type 'text' needs its text", param=f"{where}.text")
    if block.type != "text" or block.text is None:
        reason = f"a block of type {block.type[:40]!r} has no place here: send its text"
        raise ApiError(400, reason, param=where, code="unsupported_content")
    return block.text
