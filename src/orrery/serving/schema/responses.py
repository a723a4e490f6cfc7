"""``POST /v1/responses``: what is asked."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Discriminator, Field, Tag, model_validator

from orrery.schema.writing import MOST_TOKENS
from orrery.serving.errors import ApiError
from orrery.serving.schema.chat import (
    MOST_MESSAGES,
    MOST_PARTS,
    MOST_TOOLS,
    ChatRequest,
    Effort,
    Name,
    TemplateVariables,
)
from orrery.serving.schema.fields import MOST_LOGPROBS, OF_A_SERVICE, Flag, RequestPart, Text, text_or_list
from orrery.serving.schema.sampling import SamplingFields

_AS_IN_CHATS = (
    "audio", "modalities", "moderation", "continue_final_message", "add_generation_prompt", "add_special_tokens",
    "echo", "best_of", "suffix",
)  # fmt: skip
"""Fields that are refused as those of a chat are."""
LOGPROBS = "message.output_text.logprobs"
Included = Literal[
    "message.output_text.logprobs", "reasoning.encrypted_content", "message.input_image.image_url",
    "computer_call_output.output.image_url", "code_interpreter_call.outputs", "file_search_call.results",
    "web_search_call.action.sources", "web_search_call.results",
]  # fmt: skip


class ItemPart(RequestPart):
    """A part of a message, of the result of a call, or of reasoning."""

    type: Text
    text: Text | None = None
    refusal: Text | None = None
    image_url: Text | None = None


ItemContent = Annotated[
    Annotated[Text, Tag("text")] | Annotated[list[ItemPart], Field(max_length=MOST_PARTS), Tag("list")],
    Discriminator(text_or_list, "content", "it is a text or a list of parts"),
]


class ResponseItem(RequestPart):
    """One item of the input: a message, a call, the result of one, reasoning, or one of a response that is kept."""

    type: Text = "message"
    id: Text | None = Field(None, description="Of an item_reference: the item of a kept response that it stands for.")
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: ItemContent | None = None
    call_id: Text | None = None
    name: Name | None = None
    arguments: Text | None = Field(None, description="Of a call: an object, as JSON.")
    output: ItemContent | None = Field(None, description="Of the result of a call.")
    encrypted_content: Text | None = None


class FunctionTool(RequestPart):
    """A function that may be called."""

    type: Literal["function"]
    name: Name
    description: Text | None = None
    parameters: dict[str, Any] | None = None
    strict: Flag | None = None


class OtherTool(RequestPart):
    """A tool that a service runs, or one whose calls are no JSON: it is not offered to the model."""

    type: Literal[
        "apply_patch", "code_interpreter", "computer", "computer_use_preview", "custom", "file_search",
        "image_generation", "local_shell", "mcp", "namespace", "programmatic_tool_calling", "shell", "tool_search",
        "web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11",
    ]  # fmt: skip


OTHER_TOOLS = get_args(OtherTool.model_fields["type"].annotation)


def _tool(value: Any) -> str:
    """Return whether a tool is a function."""
    kind = value.get("type") if isinstance(value, Mapping) else getattr(value, "type", None)
    return "other" if kind in OTHER_TOOLS else "function"


ResponseTool = Annotated[
    Annotated[FunctionTool, Tag("function")] | Annotated[OtherTool, Tag("other")], Discriminator(_tool)
]


class NamedFunction(RequestPart):
    """The function that has to be called, or one that may be."""

    type: Literal["function"]
    name: Name


class AllowedFunctions(RequestPart):
    """Some of the tools."""

    type: Literal["allowed_tools"]
    mode: Literal["auto", "required"]
    tools: Annotated[list[NamedFunction], Field(min_length=1, max_length=MOST_TOOLS)]


def _choice(value: Any) -> str | None:
    """Return the kind of a choice of tools."""
    if isinstance(value, str):
        return "text"
    kind = value.get("type") if isinstance(value, Mapping) else getattr(value, "type", None)
    return {"function": "function", "allowed_tools": "allowed"}.get(str(kind))


Choice = Annotated[
    Annotated[Literal["none", "auto", "required"], Tag("text")]
    | Annotated[NamedFunction, Tag("function")]
    | Annotated[AllowedFunctions, Tag("allowed")],
    Discriminator(_choice, "tool_choice", "it is none, auto, required, or an object of type function or allowed_tools"),
]


class TextFormat(RequestPart):
    """What the answer looks like."""

    type: Literal["text", "json_object", "json_schema"]
    name: Text | None = None
    description: Text | None = None
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    strict: Flag | None = None


class ResponseTextSettings(RequestPart):
    """How the text of an answer is."""

    format: TextFormat | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


class ReasoningSettings(RequestPart):
    """How much is reasoned; what is reasoned is told whole, so no kind of summary changes anything."""

    effort: Effort | None = None
    summary: Text | None = None
    generate_summary: Text | None = None


class ResponsesRequest(SamplingFields):
    """Items, to which the next are asked for."""

    UNSUPPORTED: ClassVar = {
        **SamplingFields.UNSUPPORTED,
        **{name: ChatRequest.UNSUPPORTED[name] for name in _AS_IN_CHATS},
        **dict.fromkeys(("max_tokens", "max_completion_tokens"), "send max_output_tokens"),
        **dict.fromkeys(("functions", "function_call"), "send tools and tool_choice"),
        "messages": "send input",
        "reasoning_effort": 'send "reasoning": {"effort": ...}',
        "logprobs": f'send "include": ["{LOGPROBS}"], with top_logprobs',
        "n": "ask once for each answer",
        "background": "an answer is waited for; leave it out",
        "conversation": "name the response before as previous_response_id, or send its items",
        "prompt": "no prompts are kept here; send instructions and input",
        "context_management": '"truncation": "auto" leaves out the oldest turns',
        "image": "answers are text",
        "personality": "say it in the instructions",
    }
    NEUTRAL: ClassVar = {
        **SamplingFields.NEUTRAL,
        **{name: ChatRequest.NEUTRAL[name] for name in _AS_IN_CHATS if name in ChatRequest.NEUTRAL},
        "n": (1,), "background": (False,), "context_management": ([],), "logprobs": (False,),
    }  # fmt: skip
    HARMLESS: ClassVar = {
        **SamplingFields.HARMLESS,
        **OF_A_SERVICE,
        "access_programs": "there are none",
        "background_options": "they are for background alone, which is refused",
        "max_tool_calls": "it bounds the tools that a server runs, and this one runs none",
    }

    input: Annotated[
        Annotated[Text, Tag("text")]
        | Annotated[list[ResponseItem], Field(min_length=1, max_length=MOST_MESSAGES), Tag("list")],
        Discriminator(text_or_list, "input", "it is a text or a list of items"),
    ]
    instructions: Text | None = None
    previous_response_id: Text | None = None
    store: Flag | None = Field(None, description="Keep it for previous_response_id, as is done where this is left out.")
    max_output_tokens: Annotated[int, Field(strict=True, ge=1, le=MOST_TOKENS)] | None = None
    tools: Annotated[list[ResponseTool], Field(max_length=MOST_TOOLS)] | None = Field(
        None, description="Functions; other tools of OpenAI's are not offered to the model, nor told in the response."
    )
    tool_choice: Choice | None = None
    parallel_tool_calls: Flag | None = None
    chat_template_kwargs: TemplateVariables | None = Field(None, description="Variables of the model's chat template.")
    text: ResponseTextSettings | None = None
    reasoning: ReasoningSettings | None = None
    include: Annotated[list[Included], Field(max_length=16)] | None = None
    top_logprobs: Annotated[int, Field(strict=True, ge=0, le=MOST_LOGPROBS)] | None = None
    metadata: (
        Annotated[
            dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(strict=True, max_length=512)]],
            Field(max_length=16),
        ]
        | None
    ) = None
    truncation: Literal["auto", "disabled"] | None = None

    @property
    def functions(self) -> list[FunctionTool]:
        """The tools that are offered to the model."""
        return [tool for tool in self.tools or () if isinstance(tool, FunctionTool)]

    @property
    def tells_scores(self) -> bool:
        """Whether the log probabilities of tokens are told."""
        return LOGPROBS in (self.include or ())

    @model_validator(mode="after")
    def _check_together(self) -> "ResponsesRequest":
        if self.top_logprobs and not self.tells_scores:
            raise ApiError(400, f'top_logprobs is for "include": ["{LOGPROBS}"] alone', param="top_logprobs")
        form = self.text.format if self.text is not None else None
        if form is not None and form.type != "text" and super().has_form:
            raise ApiError(400, "an answer has one form: text.format and another ask for more", param="text.format")
        if form is not None and form.type == "json_schema" and form.schema_ is None:
            raise ApiError(400, "text.format needs its schema", param="text.format.schema")
        if self.text is not None and self.text.verbosity not in (None, "medium"):
            reason = "text.verbosity is not supported: say in a message how long the answer is to be"
            raise ApiError(400, reason, param="text.verbosity", code="unsupported_parameter")
        return self
