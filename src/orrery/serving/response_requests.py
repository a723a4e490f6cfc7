"""A response's request as that of a chat, and the fields of it that the response tells again."""

import time
from collections.abc import Sequence
from typing import Any

from orrery.serving.body import checked
from orrery.serving.errors import ApiError
from orrery.serving.response_items import messages_of
from orrery.serving.schema.chat import ChatRequest, Message
from orrery.serving.schema.responses import AllowedFunctions, NamedFunction, ResponseItem, ResponsesRequest
from orrery.serving.schema.sampling import SamplingFields
from orrery.serving.served import Served

FIELDS = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
}
"""From the fields of a chat to those of a response, for errors."""


def chat_of(request: ResponsesRequest, earlier: Sequence[Message]) -> tuple[list[Message], ChatRequest]:
    """Return what is said, without instructions, and the chat that is asked for.

    Args:
        request: what the client sent.
        earlier: the conversation that it goes on from.

    Raises:
        ApiError: an item that cannot be read, or fields that do not go together.
    """
    said = [*earlier, *messages_of(request.input, earlier)]
    system = {"role": "system", "content": request.instructions}
    messages = [system, *said] if request.instructions else said
    drawing = {name: getattr(request, name) for name in SamplingFields.model_fields}
    effort = request.reasoning.effort if request.reasoning is not None else None
    own = {
        "messages": messages,
        "max_completion_tokens": request.max_output_tokens,
        "logprobs": request.tells_scores,
        "top_logprobs": request.top_logprobs if request.tells_scores else None,
        "parallel_tool_calls": request.parallel_tool_calls,
        "chat_template_kwargs": request.chat_template_kwargs,
        "reasoning_effort": effort,
        "response_format": _format(request) or request.response_format,
        **_tools(request),
    }
    return said, checked(ChatRequest, {**drawing, **own})


def _tools(request: ResponsesRequest) -> dict[str, Any]:
    """Return the tools that may be called and the choice among them, as a chat says them."""
    tools, choice = list(request.tools or ()), request.tool_choice
    chosen: Any = choice
    if isinstance(choice, AllowedFunctions):
        allowed = {one.name for one in choice.tools}
        if missing := allowed - {tool.name for tool in tools}:
            raise ApiError(400, f"tool_choice allows {min(missing)!r}, which is none of the tools", param="tool_choice")
        tools, chosen = [tool for tool in tools if tool.name in allowed], choice.mode
    if isinstance(choice, NamedFunction):
        chosen = {"type": "function", "function": {"name": choice.name}}
    described = [{"type": "function", "function": tool.model_dump(exclude={"type"})} for tool in tools]
    return {"tools": described or None, "tool_choice": chosen}


def _format(request: ResponsesRequest) -> dict[str, Any] | None:
    form = request.text.format if request.text is not None else None
    if form is None or form.type == "text":
        return None
    schema = {"name": form.name, "schema": form.schema_, "strict": form.strict}
    return {"type": form.type, "json_schema": schema if form.type == "json_schema" else None}


def response_of(served: Served, request: ResponsesRequest, id: str) -> dict[str, Any]:
    """Return the fields of a response that are known before its answer."""
    fields = request.model_dump(
        by_alias=True,
        include={
            "instructions", "max_output_tokens", "metadata", "previous_response_id", "reasoning", "temperature",
            "text", "tool_choice", "tools", "top_p", "top_logprobs", "user",
        },
    )  # fmt: skip
    usual = {"metadata": {}, "tool_choice": "auto", "tools": [], "text": {"format": {"type": "text"}}}
    return {
        "id": f"resp_{id}",
        "object": "response",
        "created_at": int(time.time()),
        "model": request.model or served.name,
        **fields,
        **{name: value for name, value in usual.items() if fields[name] is None},
        "background": False,
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": request.parallel_tool_calls is not False,
        "store": request.store is not False,
        "truncation": request.truncation or "disabled",
        "usage": None,
    }


def with_answer(said: Sequence[Message], output: Sequence[dict[str, Any]]) -> list[Message]:
    """Return a conversation with the items of a response, for the next one."""
    return [*said, *messages_of([ResponseItem.model_validate(item) for item in output], said)]
