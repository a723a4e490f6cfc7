"""A response's request as that of a chat, and the fields of it that the response tells again."""

import time
from collections.abc import Sequence
from typing import Any

from orrery.serving.body import checked
from orrery.serving.kept_responses import KeptResponses
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


def chat_of(request: ResponsesRequest, kept: KeptResponses) -> tuple[list[Message], ChatRequest]:
    """Return what is said, without instructions, and the chat that is asked for.

    Args:
        request: what the client sent.
        kept: the responses that it may go on from, or name items of.

    Raises:
        ApiError: an item that cannot be read, or fields that do not go together.
    """
    before, given = request.previous_response_id, request.input
    earlier = () if before is None else kept.find(before, "previous_response_id").messages
    if not isinstance(given, str):
        given = [_whole(item, f"input[{place}]", kept) for place, item in enumerate(given)]
    said = [*earlier, *messages_of(given, earlier)]
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


def _whole(item: ResponseItem, where: str, kept: KeptResponses) -> ResponseItem:
    """Return an item, or that for which a reference stands."""
    if item.type != "item_reference":
        return item
    return ResponseItem.model_validate(kept.item(item.id or "", where))


def _tools(request: ResponsesRequest) -> dict[str, Any]:
    """Return the tools that may be called and the choice among them, as a chat says them."""
    tools = [{"type": "function", "function": tool.model_dump(exclude={"type"})} for tool in request.functions]
    choice: Any = request.tool_choice
    if isinstance(choice, AllowedFunctions):
        names = {"mode": choice.mode, "tools": list(map(_named, choice.tools))}
        choice = {"type": choice.type, choice.type: names}
    return {"tools": tools or None, "tool_choice": _named(choice) if isinstance(choice, NamedFunction) else choice}


def _named(function: NamedFunction) -> dict[str, Any]:
    return {"type": "function", "function": {"name": function.name}}


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
            "text", "tool_choice", "top_p", "top_logprobs", "user",
        },
    )  # fmt: skip
    usual = {"metadata": {}, "tool_choice": "auto", "text": {"format": {"type": "text"}}}
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
        "tools": [tool.model_dump() for tool in request.functions],
        "truncation": request.truncation or "disabled",
        "usage": None,
    }


def with_answer(said: Sequence[Message], output: Sequence[dict[str, Any]]) -> list[Message]:
    """Return a conversation with the items of a response, for the next one."""
    return [*said, *messages_of([ResponseItem.model_validate(item) for item in output], said)]
