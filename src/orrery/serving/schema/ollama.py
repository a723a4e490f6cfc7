"""Ollama's interface: what is asked."""

from abc import ABC
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from orrery.serving.schema.chat import MOST_MESSAGES, MOST_TOOLS, Function, Name
from orrery.serving.schema.fields import DRAWN, MOST_LOGPROBS, Body, Flag, Number, RequestPart, Text, TokenId
from orrery.serving.schema.reading import MOST_INPUTS

DURATION = r"^[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"
"""How Go writes durations: ``5m``, ``1h30m``, ``-1s``."""
KeepAlive = Number | Annotated[str, Field(strict=True, max_length=64, pattern=DURATION)]
Think = Flag | Literal["low", "medium", "high", "max"]
COUNTED = ("repeat_penalty", "repeat_last_n", "num_predict", "num_ctx")
"""Options that have another name here, or count tokens."""
ALWAYS_LOADED = "the one model stays in memory for as long as the server runs"


class OllamaFunctionCall(RequestPart):
    """Which function is called, and with what."""

    name: Name
    arguments: dict[str, Any]


class OllamaToolCall(RequestPart):
    """A call in an earlier answer."""

    id: Text | None = None
    function: OllamaFunctionCall


class OllamaMessage(RequestPart):
    """One message."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Text | None = None
    thinking: Text | None = None
    images: list[Any] | None = None
    tool_calls: Annotated[list[OllamaToolCall], Field(max_length=MOST_TOOLS)] | None = None
    tool_name: Text | None = None
    tool_call_id: Text | None = None


class OllamaTool(RequestPart):
    """A function that may be called."""

    type: Literal["function"] | None = None
    function: Function


class Writing(Body, ABC):
    """What both routes that write are asked."""

    UNSUPPORTED: ClassVar = {
        **dict.fromkeys((*DRAWN, *COUNTED, "seed", "stop"), "send it in options"),
        **dict.fromkeys(("response_format", "guided_json", "json_schema"), "send the schema as format"),
        **dict.fromkeys(("max_tokens", "max_completion_tokens", "max_output_tokens"), "send num_predict in options"),
        "tool_choice": "/v1/chat/completions reads it; here the model decides",
        "reasoning_effort": "send think",
        "shift": "an answer ends where the context does",
        "_debug_render_only": "POST /tokenize tells what the model reads",
    }
    NEUTRAL: ClassVar = {"shift": (False,), "tool_choice": ("auto",), "_debug_render_only": (False,)}
    HARMLESS: ClassVar = {"keep_alive": ALWAYS_LOADED}

    model: Text | None = None
    stream: Flag | None = Field(None, description="Lines of JSON as the answer grows, unless it is false.")
    format: Literal["", "json"] | dict[str, Any] | None = Field(None, description="json, or a schema.")
    options: dict[str, Any] | None = None
    think: Think | None = None
    truncate: Flag | None = Field(None, description="Leave out the oldest turns that do not fit, unless it is false.")
    logprobs: Flag | None = None
    top_logprobs: Annotated[int, Field(strict=True, ge=0, le=MOST_LOGPROBS)] | None = None
    keep_alive: KeepAlive | None = None


class GenerateRequest(Writing):
    """A prompt to answer, or with ``raw`` to continue."""

    UNSUPPORTED: ClassVar = {
        **Writing.UNSUPPORTED,
        "template": "the model's own is used; orrery serve MODEL --template takes another",
        "width": "answers are texts",
        "height": "answers are texts",
        "steps": "answers are texts",
    }
    NEUTRAL: ClassVar = {
        **Writing.NEUTRAL, "template": ("",), "width": (0,), "height": (0,), "steps": (0,),
    }  # fmt: skip

    prompt: Text | None = None
    images: list[Any] | None = Field(None, description="For models that see: a picture in base64.")
    suffix: Text | None = Field(None, description="What stands behind the answer.")
    system: Text | None = None
    raw: Flag | None = Field(None, description="Continue the prompt, without the template of chats.")
    context: Annotated[list[TokenId], Field(max_length=1 << 20)] | None = Field(
        None, description="What an earlier answer told as its context; the prompt goes on from there."
    )


class OllamaChatRequest(Writing):
    """A conversation, of which the next message is asked for."""

    messages: Annotated[list[OllamaMessage], Field(max_length=MOST_MESSAGES)] | None = None
    tools: Annotated[list[OllamaTool], Field(max_length=MOST_TOOLS)] | None = None


class EmbedRequest(Body):
    """Texts to be turned into vectors."""

    HARMLESS: ClassVar = {"keep_alive": ALWAYS_LOADED, "options": "they say how to write, or how to load the model"}

    model: Text | None = None
    input: Text | Annotated[list[Annotated[str, Field(strict=True, min_length=1)]], Field(max_length=MOST_INPUTS)]
    truncate: Flag | None = Field(None, description="Cut inputs that are longer than the context, unless it is false.")
    dimensions: Annotated[int, Field(strict=True, ge=0)] | None = Field(
        None, description="Numbers of a vector; a model has one width, and any other is refused."
    )
    options: dict[str, Any] | None = None
    keep_alive: KeepAlive | None = None


class OllamaEmbeddingsRequest(Body):
    """A text to be turned into a vector, as older clients ask."""

    HARMLESS: ClassVar = EmbedRequest.HARMLESS

    model: Text | None = None
    prompt: Text = ""
    options: dict[str, Any] | None = None
    keep_alive: KeepAlive | None = None


class ShowRequest(Body):
    """A model to be told of, under its new or its old field."""

    model: Text | None = None
    name: Text | None = None
