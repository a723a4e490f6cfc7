"""``POST /v1/messages``, Anthropic's interface: what is asked."""

from abc import ABC
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Discriminator, Field, Tag

from orrery.schema.writing import MOST_TOKENS
from orrery.serving.schema.chat import MOST_MESSAGES, MOST_PARTS, MOST_TOOLS, Effort, Name, TemplateVariables
from orrery.serving.schema.fields import MOST_STOPS, Flag, RequestPart, Stop, Text, text_or_list
from orrery.serving.schema.sampling import SamplingFields

_TEXT_OR_BLOCKS = Discriminator(text_or_list, "content", "it is a text or a list of blocks")
KEPT_THINKING = {"type": "clear_thinking_20251015", "keep": "all"}
"""What Claude Code sends with every request: by it nothing is left out of a conversation."""


class Source(RequestPart):
    """Where a picture stands: in the request itself."""

    type: Text
    media_type: Text | None = None
    data: Text | None = None
    url: Text | None = None


class AnyBlock(RequestPart, ABC):
    """A text or a picture; the ``source`` of blocks that are refused may be a text."""

    type: Text
    text: Text | None = None
    source: Source | Text | None = None


class InnerBlock(AnyBlock):
    """A part of what a tool gave, or of the system's message."""


Given = Annotated[
    Annotated[Text, Tag("text")] | Annotated[list[InnerBlock], Field(max_length=MOST_PARTS), Tag("list")],
    _TEXT_OR_BLOCKS,
]


class Block(AnyBlock):
    """A part of a message: a text, a picture, reasoning, a call of a tool, or what it gave."""

    thinking: Text | None = None
    id: Text | None = None
    name: Name | None = None
    input: dict[str, Any] | None = None
    tool_use_id: Text | None = None
    content: Given | None = None
    is_error: Flag | None = None


Blocks = Annotated[
    Annotated[Text, Tag("text")] | Annotated[list[Block], Field(max_length=MOST_PARTS), Tag("list")], _TEXT_OR_BLOCKS
]


class Turn(RequestPart):
    """One message; that of the assistant which stands last is what the answer begins with."""

    role: Literal["user", "assistant", "system"]
    content: Blocks


class AnthropicTool(RequestPart):
    """A function that may be called."""

    type: Literal["custom"] | None = None
    name: Name
    description: Text | None = None
    input_schema: dict[str, Any]
    strict: Flag | None = None


class AnthropicChoice(RequestPart):
    """Which tools are to be called."""

    type: Literal["auto", "any", "none", "tool"]
    name: Name | None = None
    disable_parallel_tool_use: Flag | None = None


class Thinking(RequestPart):
    """Whether to reason; the budget changes nothing, for max_tokens bounds reasoning and answer together."""

    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: Annotated[int, Field(strict=True, ge=1)] | None = None


class SchemaFormat(RequestPart):
    """The JSON schema of the answer."""

    type: Literal["json_schema"]
    schema_: dict[str, Any] = Field(alias="schema")


class OutputConfig(RequestPart):
    """How much is reasoned, and what the answer looks like."""

    effort: Effort | None = None
    format: SchemaFormat | None = None


class Conversing(SamplingFields, ABC):
    """A conversation."""

    UNSUPPORTED: ClassVar = {
        **{name: why for name, why in SamplingFields.UNSUPPORTED.items() if name != "thinking"},
        "n": "ask once for each answer",
        "container": "nothing is run here",
        "mcp_servers": "the server opens no connections",
        **dict.fromkeys(("context_management", "compaction"), "leave the oldest turns out yourself"),
        "thread": "no messages are kept here; send them",
        "fallbacks": "this server has one model and sends nothing on",
        "stop": "send stop_sequences",
        "max_completion_tokens": "send max_tokens",
        "reasoning_effort": "send output_config.effort, or thinking",
        **dict.fromkeys(("logprobs", "top_logprobs"), "/v1/chat/completions tells them"),
        **dict.fromkeys(("functions", "function_call"), "send tools and tool_choice"),
        "output_format": "send the schema as output_config.format",
    }
    NEUTRAL: ClassVar = {
        **SamplingFields.NEUTRAL,
        "n": (1,),
        "logprobs": (False,),
        "top_logprobs": (0,),
        "mcp_servers": ([],),
        "context_management": ({}, {"edits": []}, {"edits": [KEPT_THINKING]}),
        "fallbacks": ([],),
    }
    HARMLESS: ClassVar = {
        **SamplingFields.HARMLESS,
        "metadata": "nothing depends on who asks",
        "user_profile_id": "nothing depends on who asks",
        "workspace_id": "nothing depends on who asks",
        "inference_geo": "the model runs where the server does",
        **dict.fromkeys(("billing_policy", "fallback_credit_token"), "nothing is billed"),
        "service_tier": "there is one",
        "speed": "there is one",
        "cache_control": "whatever begins as an earlier prompt did goes on from its session",
        "diagnostics": "nothing is told beside the answer",
        "betas": "what is answered needs no name of a beta",
    }

    messages: Annotated[list[Turn], Field(min_length=1, max_length=MOST_MESSAGES)]
    system: Given | None = None
    tools: Annotated[list[AnthropicTool], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: AnthropicChoice | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    chat_template_kwargs: TemplateVariables | None = Field(None, description="Variables of the model's chat template.")
    max_tokens: Annotated[int, Field(strict=True, ge=1, le=MOST_TOKENS)] | None = None
    stop_sequences: Annotated[list[Stop], Field(max_length=MOST_STOPS)] | None = None


class CountRequest(Conversing):
    """A conversation whose tokens are counted."""


class MessagesRequest(Conversing):
    """A conversation, of which the next message is asked for."""

    max_tokens: Annotated[int, Field(strict=True, ge=1, le=MOST_TOKENS)] = Field(
        description="The answer ends where the context does in any case."
    )
