"""Requests of Anthropic's interface as those of a chat."""

import json
from collections.abc import Sequence
from typing import Any

from orrery.serving.body import checked
from orrery.serving.conversations import Terms
from orrery.serving.errors import ApiError
from orrery.serving.schema.chat import ChatRequest
from orrery.serving.schema.messages import AnthropicChoice, AnyBlock, Block, Conversing
from orrery.serving.schema.sampling import SamplingFields
from orrery.serving.served import Served

FIELDS = {
    "stop": "stop_sequences",
    "reasoning_effort": "thinking",
    "response_format": "output_config.format",
    "prefix_ids": "messages",
    "max_completion_tokens": "max_tokens",
}
"""From the fields of a chat to those of this interface, for errors."""


def chat_of(served: Served, request: Conversing) -> ChatRequest:
    """Return the chat that is asked for; what the last message of the assistant says is what the answer begins with.

    Raises:
        ApiError: a block that cannot be read, or fields that do not go together.
    """
    turns, begun = list(request.messages), ""
    if turns[-1].role == "assistant" and len(turns) > 1:
        place = f"messages[{len(turns) - 1}].content"
        begun = _text(turns.pop().content, place)
    said = [{"role": "system", "content": _text(request.system, "system")}] if request.system else []
    called: dict[str, str] = {}
    for number, turn in enumerate(turns):
        blocks = [Block(type="text", text=turn.content)] if isinstance(turn.content, str) else turn.content
        take = _assistant if turn.role == "assistant" else _user
        said += take(blocks, f"messages[{number}].content", called)
    config = request.output_config
    form = None if config is None or config.format is None else config.format.schema_
    own = {
        **{name: getattr(request, name) for name in SamplingFields.model_fields},
        "messages": said,
        "stop": request.stop_sequences,
        "chat_template_kwargs": request.chat_template_kwargs,
        "reasoning_effort": None if config is None else config.effort,
        **({} if form is None else {"response_format": {"type": "json_schema", "json_schema": {"schema": form}}}),
        **_tools(request),
    }
    if begun:
        own["prefix_ids"] = [*served.lm.tokenizer.continuing.encode(begun), *(request.prefix_ids or ())]
    return checked(ChatRequest, own)


def terms_of(request: Conversing) -> Terms:
    """Return what is asked for beside the fields of a chat; an answer ends where the context does in any case."""
    think = {"enabled": True, "disabled": False}.get(request.thinking.type) if request.thinking is not None else None
    return Terms(usual=request.max_tokens, think=think, apart=True)


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


def _assistant(blocks: Sequence[Block], where: str, called: dict[str, str]) -> list[dict[str, Any]]:
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
    return [message]


def _user(blocks: Sequence[Block], where: str, called: dict[str, str]) -> list[dict[str, Any]]:
    """Return what the user said, and what tools gave, each as a message."""
    messages: list[dict[str, Any]] = []
    for number, block in enumerate(blocks):
        place = f"{where}[{number}]"
        if block.type == "tool_result":
            if block.tool_use_id not in called:
                raise ApiError(400, "no tool_use with this id stands before its result", param=f"{place}.tool_use_id")
            named = {"tool_call_id": block.tool_use_id, "name": called[block.tool_use_id]}
            given = _text(block.content or "", f"{place}.content")
            messages.append({"role": "tool", "content": f"Error: {given}" if block.is_error else given, **named})
            continue
        if not messages or messages[-1]["role"] != "user":
            messages.append({"role": "user", "content": []})
        messages[-1]["content"].append(_part(block, place))
    return messages


def _part(block: Block, where: str) -> dict[str, Any]:
    """Return a block of the user as a part of a chat's message."""
    if block.type != "image" or block.source is None:
        return {"type": "text", "text": _text_of(block, where)}
    source = block.source
    address = source.url if source.type == "url" else f"data:{source.media_type};base64,{source.data}"
    return {"type": "image_url", "image_url": {"url": address or ""}}


def _text(content: str | Sequence[AnyBlock] | None, where: str) -> str:
    """Return what blocks of text say."""
    if content is None or isinstance(content, str):
        return content or ""
    return "".join(_text_of(block, f"{where}[{number}]") for number, block in enumerate(content))


def _text_of(block: AnyBlock, where: str) -> str:
    if block.type != "text" or block.text is None:
        reason = f"a block of type {block.type[:40]!r} has no place here: send its text"
        raise ApiError(400, reason, param=where, code="unsupported_content")
    return block.text
