"""Requests of Ollama's clients as those of a chat."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from orrery.data.pictures.addresses import BEGINNING, is_address
from orrery.serving import ollama_options, requests
from orrery.serving.abilities import CHAT
from orrery.serving.body import checked
from orrery.serving.conversations import PreparedConversation, Terms, continuing, prepare, rendered
from orrery.serving.errors import ApiError
from orrery.serving.schema import ollama
from orrery.serving.schema.chat import ChatRequest
from orrery.serving.served import Served
from orrery.text.tokenizer import Tokenizer

LATEST = ":latest"
"""The tag that Ollama's clients put behind a name that has none."""


def called(served: Served, name: str | None) -> str | None:
    """Return what a model is called here; a tag that says nothing is left out.

    Raises:
        ApiError: 404 for another model.
    """
    if name is not None and name not in (served.name, *served.adapters):
        name = name.removesuffix(LATEST)
    served.adapter_of(name)
    return name


def chat_of(served: Served, request: ollama.Writing, messages: Sequence[Mapping[str, Any]], tools: Any) -> ChatRequest:
    """Return the chat that is asked for.

    Raises:
        ApiError: an option, a form or a message that cannot be followed.
    """
    form = request.format or None
    own = {
        **ollama_options.drawing(served, request.options or {}),
        "model": called(served, request.model),
        "messages": messages,
        "tools": tools or None,
        "logprobs": request.logprobs,
        "top_logprobs": request.top_logprobs if request.logprobs else None,
        "response_format": _format(form),
    }
    return checked(ChatRequest, own)


def _format(form: str | Mapping[str, Any] | None) -> dict[str, Any] | None:
    if form is None:
        return None
    if isinstance(form, str):
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {"name": "format", "schema": form}}


def terms_of(request: ollama.Writing) -> Terms:
    """Return what is asked for beside the fields of a chat.

    Raises:
        ApiError: an option that is no count of tokens.
    """
    options = request.options or {}
    most = ollama_options.count(options, "num_predict", -2)
    context = ollama_options.count(options, "num_ctx", 1)
    # Below 1: for as long as the context lasts.
    usual = most if most is not None and most > 0 else None
    return Terms(context, usual, cuts=request.truncate is not False, think=request.think, apart=True)


def messages_of(served: Served, messages: Sequence[ollama.OllamaMessage]) -> list[dict[str, Any]]:
    """Return messages as a chat has them: calls with ids, and results that name them.

    A result without an id answers the first call that none has answered, of its name where it has one.

    Raises:
        ApiError: a message that holds an image that is no base64, or that the model does not see.
    """
    open: list[tuple[str, str]] = []
    converted = []
    for place, message in enumerate(messages):
        said = with_pictures(served, message.content or "", message.images, f"messages[{place}].images")
        own: dict[str, Any] = {"role": message.role, "content": said}
        if message.thinking:
            own["reasoning_content"] = message.thinking
        if message.tool_calls:
            own["tool_calls"] = [_call(call, place, number) for number, call in enumerate(message.tool_calls)]
            open += [(call["id"], call["function"]["name"]) for call in own["tool_calls"]]
        if message.role == "tool":
            own |= _answered(message, open, place)
        converted.append(own)
    return converted


def with_pictures(served: Served, text: str, images: Sequence[Any] | None, where: str) -> Any:
    """Return a content as a chat has it: a text, or parts where there are pictures, which Ollama sends as base64.

    Raises:
        ApiError: a picture is no text of base64, or the model sees none.
    """
    if not images:
        return text
    if served.pictures is None:
        raise ApiError(400, f"{where}: this model sees no picture", param=where, code="unsupported_content")
    if wrong := next((image for image in images if not isinstance(image, str) or "://" in image[:16]), None):
        reason = f"{str(wrong)[:40]!r} is no picture; send its content in base64: the server fetches nothing"
        raise ApiError(400, reason, param=where, code="unsupported_content")
    addresses = [image if is_address(image) else BEGINNING + image for image in images]
    parts = [{"type": "image_url", "image_url": {"url": address}} for address in addresses]
    return [*([{"type": "text", "text": text}] if text else []), *parts]


def _call(call: ollama.OllamaToolCall, place: int, number: int) -> dict[str, Any]:
    arguments = json.dumps(call.function.arguments, ensure_ascii=False)
    function = {"name": call.function.name, "arguments": arguments}
    # Nine letters and digits, as Mistral's template demands.
    return {"id": call.id or f"c{place % 10_000:04d}{number:04d}", "type": "function", "function": function}


def _answered(message: ollama.OllamaMessage, open: list[tuple[str, str]], place: int) -> dict[str, Any]:
    """Return which call a result answers, and of which function it is."""
    fits = [call for call in open if message.tool_call_id in (None, call[0]) and message.tool_name in (None, call[1])]
    id, name = fits[0] if fits else (message.tool_call_id or f"c{place % 10_000:04d}9999", message.tool_name)
    open[:] = [call for call in open if call[0] != id]
    return {"tool_call_id": id} | ({"name": name} if name else {})


def prepared_generate(
    served: Served, chat: ChatRequest, request: ollama.GenerateRequest, terms: Terms
) -> PreparedConversation:
    """Return what continues a prompt: filled in, raw, or as the answer to a question.

    Raises:
        ApiError: fields that do not go together, or a prompt that does not fit.
    """
    prompt = request.prompt or ""
    if served.pictures is not None:
        _refuse_beside(request, "images", ("suffix", "raw", "context"))
        return prepare(served, chat, terms)
    if request.suffix:
        _refuse_beside(request, "suffix", ("system", "context"))
        infill = requests.infill_for(served)
        ids = requests.around_gap(served, infill, prompt, request.suffix, "prompt")
        return continuing(served, chat, ids, infill.ends, _plainly(terms), "prompt")
    if request.raw:
        _refuse_beside(request, "raw", ("system", "context"))
    if request.raw or (
        CHAT not in served.routes and not request.system
    ):  # as Ollama has it for a model without a template
        ids = requests.encoded(served, prompt, "prompt")
        if request.context:
            ids = _behind(served, request.context, ids)
        return continuing(served, chat, ids, frozenset(), _plainly(terms), "prompt")
    if not request.context:
        return prepare(served, chat, terms)
    ids = _behind(served, request.context, rendered(served, chat.messages, think=terms.think))
    return continuing(served, chat, ids, served.template.end, terms, "context")


def _plainly(terms: Terms) -> Terms:
    """Return the terms of a text that is no conversation."""
    if terms.think:
        reason = "think is for prompts that go through the template of chats"
        raise ApiError(400, reason, param="think", code="unsupported_parameter")
    return Terms(terms.context, terms.usual)


def _behind(served: Served, context: Sequence[int], ids: list[int]) -> list[int]:
    """Return ids behind those of an earlier context; what opens a text stands at the beginning alone."""
    tokenizer: Tokenizer = served.lm.tokenizer
    opening = list(tokenizer.opening)
    behind = ids[len(opening) :] if opening and ids[: len(opening)] == opening else ids
    return [*requests.given(served, context, "context"), *behind]


def _refuse_beside(request: ollama.GenerateRequest, field: str, others: Sequence[str]) -> None:
    for other in others:
        if getattr(request, other):
            raise ApiError(400, f"{other} has no place beside {field}", param=other)
