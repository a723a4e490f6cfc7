"""``POST /v1/chat/completions``: what is asked, and what is answered."""

from abc import ABC
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, Discriminator, Field, Tag, model_validator

from orrery.schema.writing import MOST_TOKENS
from orrery.serving.errors import ApiError
from orrery.serving.schema.fields import MOST_LOGPROBS, OF_A_SERVICE, Flag, RequestPart, Text, text_or_list
from orrery.serving.schema.sampling import SamplingFields
from orrery.serving.usage import Usage

MOST_MESSAGES, MOST_PARTS, MOST_TOOLS = 4_096, 1_024, 128
OWN_VARIABLES = {"self", "messages", "prompt", "replies", "tools", "add_generation_prompt"}
"""Variables of a chat template that a request has no say in."""
_MOST = ("max_tokens", "max_completion_tokens", "n_predict")
Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
Name = Annotated[str, Field(strict=True, pattern=r"^[a-zA-Z0-9_.-]{1,64}$")]


def _check_variables(given: dict[str, Any]) -> dict[str, Any]:
    """Refuse variables of a chat template that are the server's."""
    if taken := OWN_VARIABLES & given.keys():
        reason = f"{min(taken)} is given to the template by the server"
        raise ApiError(400, reason, param=f"chat_template_kwargs.{min(taken)}")
    return given


TemplateVariables = Annotated[dict[str, Any], AfterValidator(_check_variables)]
"""What a request gives to the chat template beside the messages."""


class PictureAddress(RequestPart):
    """A picture, as its content: ``data:image/png;base64,...``."""

    url: Text


class ContentPart(RequestPart):
    """A part of a message: a text, or for models that see a picture."""

    type: Text
    text: Text | None = None
    image_url: PictureAddress | None = None

    @model_validator(mode="before")
    @classmethod
    def _of_other_forms(cls, given: Any) -> Any:
        """Read a refusal as what was said, and the address that Mistral's clients send without an object."""
        if isinstance(given, dict) and given.get("type") == "refusal":
            return {**given, "type": "text", "text": given.get("refusal")}
        if isinstance(given, dict) and isinstance(address := given.get("image_url"), str):
            return {**given, "image_url": {"url": address}}
        return given


Content = Annotated[
    Annotated[Text, Tag("text")] | Annotated[list[ContentPart], Field(max_length=MOST_PARTS), Tag("list")],
    Discriminator(text_or_list, "content", "it is a text or a list of parts"),
]


class CalledFunction(RequestPart):
    """Which function is called, and with what."""

    name: Name
    arguments: Text = Field(description="An object, as JSON.")


class ToolCall(RequestPart):
    """A call in an earlier answer."""

    id: Text
    type: Literal["function"] = "function"
    function: CalledFunction


class Message(RequestPart):
    """One message; whatever it says is ordinary text, never a control token."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Content | None = None
    name: Text | None = None
    tool_calls: Annotated[list[ToolCall], Field(max_length=MOST_TOOLS)] | None = None
    tool_call_id: Text | None = None
    reasoning_content: Text | None = None
    function_call: CalledFunction | None = Field(None, description="The old form of tool_calls.")
    prefix: Flag | None = Field(None, exclude=True, description="Of Mistral's and DeepSeek's clients; refused.")

    @model_validator(mode="before")
    @classmethod
    def _of_refusals(cls, given: Any) -> Any:
        """Read the refusal of an earlier answer as what the assistant said."""
        if isinstance(given, dict) and given.get("content") is None and isinstance(given.get("refusal"), str):
            return {**given, "content": given["refusal"]}
        return given


class Function(RequestPart):
    """What a model may call."""

    name: Name
    description: Text | None = None
    parameters: dict[str, Any] | None = None
    strict: Flag | None = None


class Tool(RequestPart):
    """A tool, which is a function."""

    type: Literal["function"]
    function: Function


class ChosenName(RequestPart):
    """The name of a function that has to be called."""

    name: Name


class ChosenTool(RequestPart):
    """The one function that has to be called."""

    type: Literal["function"]
    function: ChosenName


class AllowedNames(RequestPart):
    """Some of the tools, and whether one of them has to be called."""

    mode: Literal["auto", "required"]
    tools: Annotated[list[ChosenTool], Field(min_length=1, max_length=MOST_TOOLS)]


class AllowedTools(RequestPart):
    """The tools that may be called this time."""

    type: Literal["allowed_tools"]
    allowed_tools: AllowedNames


def _kind(value: Any) -> str | None:
    """Return the kind of a choice of tools."""
    if isinstance(value, str):
        return "text"
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return {"function": "object", "allowed_tools": "allowed"}.get(str(kind))


Choice = Annotated[
    Annotated[Literal["none", "auto", "required"], Tag("text")]
    | Annotated[ChosenTool, Tag("object")]
    | Annotated[AllowedTools, Tag("allowed")],
    Discriminator(_kind, "tool_choice", "it is none, auto, required, or an object of type function or allowed_tools"),
]
OldChoice = Annotated[
    Annotated[Literal["none", "auto"], Tag("text")] | Annotated[ChosenName, Tag("object")],
    Discriminator(
        lambda value: "text" if isinstance(value, str) else "object" if isinstance(value, dict | ChosenName) else None,
        "function_call",
        "it is none, auto, or an object that names a function",
    ),
]


class ChatRequest(SamplingFields):
    """A conversation, of which the next message is asked for."""

    UNSUPPORTED: ClassVar = {
        **SamplingFields.UNSUPPORTED,
        "audio": "answers are text",
        "modalities": "answers are text",
        "prediction": "guesses are made by the server",
        "web_search_options": "the server opens no connections",
        "verbosity": "say in a message how long the answer is to be",
        "moderation": "nothing is moderated",
        "continue_final_message": "send the tokens that the answer begins with as prefix_ids",
        "add_generation_prompt": "an answer is always begun; /v1/completions continues a text",
        "add_special_tokens": "the template says which tokens stand where",
        "echo": "/v1/completions tells a prompt again",
        "best_of": "/v1/completions draws several and tells the best",
        "suffix": "/v1/completions fills in before a suffix",
        "max_output_tokens": "send max_completion_tokens",
        "reasoning": "send reasoning_effort",
    }
    NEUTRAL: ClassVar = {
        **SamplingFields.NEUTRAL,
        "add_special_tokens": (False,),
        "echo": (False,),
        "best_of": (1,),
        "suffix": ("",),
        "reasoning": ({},),
        "modalities": (["text"],),
        "verbosity": ("medium",),
        "continue_final_message": (False,),
        "add_generation_prompt": (True,),
    }
    HARMLESS: ClassVar = {
        **SamplingFields.HARMLESS,
        **OF_A_SERVICE,
        "metadata": "no chat is kept",
        "store": "no chat is kept; /v1/responses keeps what it answers",
    }

    messages: Annotated[list[Message], Field(min_length=1, max_length=MOST_MESSAGES)]
    max_completion_tokens: Annotated[int, Field(strict=True, ge=1, le=MOST_TOKENS)] | None = Field(
        None, description="Where it is left out, what is left of the context."
    )
    max_tokens: Annotated[int, Field(strict=True, ge=1, le=MOST_TOKENS)] | None = None
    logprobs: Flag | None = None
    top_logprobs: Annotated[int, Field(strict=True, ge=0, le=MOST_LOGPROBS)] | None = None
    reasoning_effort: Effort | None = Field(
        None, description="For models whose template grades reasoning; a template with a switch is turned on or off."
    )
    chat_template_kwargs: TemplateVariables | None = Field(
        None, description="Variables of the model's chat template, such as enable_thinking."
    )
    tools: Annotated[list[Tool], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: Choice | None = None
    parallel_tool_calls: Flag | None = None
    functions: Annotated[list[Function], Field(max_length=MOST_TOOLS)] | None = Field(
        None, description="The old form of tools; the answer tells its one call as function_call."
    )
    function_call: OldChoice | None = Field(None, description="The old form of tool_choice.")

    @property
    def longest(self) -> int | None:
        """The most tokens of an answer, under its new or its old name."""
        return self.max_completion_tokens or self.max_tokens

    @property
    def tools_field(self) -> str:
        """The field that holds what may be called."""
        return "functions" if self.functions else "tools"

    @property
    def used_tools(self) -> list[Tool]:
        """The tools that may be called, those of old clients among them."""
        if "none" in (self.tool_choice, self.function_call):
            return []
        if isinstance(choice := self.tool_choice, AllowedTools):
            allowed = [one.function.name for one in choice.allowed_tools.tools]
            return [tool for tool in self.tools or () if tool.function.name in allowed]
        return list(self.tools or ()) or [Tool(type="function", function=own) for own in self.functions or ()]

    @property
    def forced(self) -> list[Function]:
        """The functions of which one has to be called; none where the model decides."""
        functions = [tool.function for tool in self.used_tools]
        if isinstance(self.tool_choice, ChosenTool):
            return [function for function in functions if function.name == self.tool_choice.function.name]
        if isinstance(self.function_call, ChosenName):
            return [function for function in functions if function.name == self.function_call.name]
        choice = self.tool_choice
        mode = choice.allowed_tools.mode if isinstance(choice, AllowedTools) else choice
        return functions if mode == "required" else []

    @property
    def has_form(self) -> bool:
        """Whether the answer must be a call, or JSON."""
        return bool(self.forced) or super().has_form

    @model_validator(mode="before")
    @classmethod
    def _without_bounds(cls, given: Any) -> Any:
        """Leave out the -1 with which clients of LM Studio and llama.cpp bound no answer."""
        if not isinstance(given, dict):
            return given
        return {name: value for name, value in given.items() if name not in _MOST or value != -1}

    @model_validator(mode="after")
    def _check_together(self) -> "ChatRequest":
        for place, message in enumerate(self.messages):
            _check_message(message, f"messages[{place}]")
        if self.top_logprobs and not self.logprobs:
            raise ApiError(400, "top_logprobs is for logprobs: true alone", param="top_logprobs")
        form = self.response_format
        if self.has_form and (self.min_tokens or self.ignore_eos):
            reason = "an answer of a form ends where the form does"
            raise ApiError(400, reason, param="min_tokens" if self.min_tokens else "ignore_eos")
        if self.prefix and (self.used_tools or (form is not None and form.type != "text")):
            raise ApiError(400, "prefix_ids are for answers of no form, without tools", param="prefix_ids")
        _check_tools(self)
        return self


def _check_tools(request: ChatRequest) -> None:
    """Refuse tools that share a name, a choice that is none of them, and the old and the new form at once."""
    if request.functions and (request.tools or request.tool_choice is not None):
        reason = "functions are the old form of tools, with function_call for tool_choice: send one form"
        raise ApiError(400, reason, param="functions")
    functions = [tool.function for tool in request.tools or ()] or list(request.functions or ())
    if len({function.name for function in functions}) < len(functions):
        raise ApiError(400, f"two {request.tools_field} have one name", param=request.tools_field)
    choice = request.tool_choice
    if isinstance(choice, AllowedTools):
        known = {function.name for function in functions}
        if missing := {one.function.name for one in choice.allowed_tools.tools} - known:
            raise ApiError(400, f"tool_choice allows {min(missing)!r}, which is none of the tools", param="tool_choice")
    elif choice not in (None, "none", "auto") and not request.forced:
        raise ApiError(400, "tool_choice names none of the tools", param="tool_choice")
    if isinstance(request.function_call, ChosenName) and (request.tools or not request.forced):
        raise ApiError(400, "function_call names none of the functions", param="function_call")


def _check_message(message: Message, where: str) -> None:
    """Refuse a message without words, and parts that are no text."""
    if message.content is None and message.role != "assistant":
        raise ApiError(400, f"a message of {message.role} needs a content", param=f"{where}.content")
    if message.prefix:
        reason = "prefix is not supported: send the tokens that the answer begins with as prefix_ids"
        raise ApiError(400, reason, param=f"{where}.prefix", code="unsupported_parameter")
    if message.role == "tool" and message.tool_call_id is None:
        raise ApiError(400, "a message of tool says which call it answers", param=f"{where}.tool_call_id")
    if message.role == "function" and not message.name:
        raise ApiError(400, "a message of function says by its name which one answers", param=f"{where}.name")
    if message.function_call is not None and (message.tool_calls or message.role != "assistant"):
        reason = "function_call stands in a message of assistant, without tool_calls"
        raise ApiError(400, reason, param=f"{where}.function_call")
    called = bool(message.tool_calls) or message.function_call is not None
    if message.role == "assistant" and message.content is None and not called:
        raise ApiError(400, "a message of assistant needs a content or tool_calls", param=f"{where}.content")
    for place, part in enumerate(message.content if isinstance(message.content, list) else ()):
        _check_part(part, f"{where}.content[{place}]")


def check_address(address: str, where: str) -> None:
    """Refuse the address of a picture that would have to be fetched.

    Raises:
        ApiError: it does not hold the picture itself.
    """
    if address[:5].lower() != "data:":
        reason = "the server fetches no address for a client; send the picture itself: data:image/png;base64,..."
        raise ApiError(400, reason, param=where, code="unsupported_content")


def _check_part(part: ContentPart, where: str) -> None:
    """Refuse a part that is neither a text nor a picture, and a picture that would have to be fetched."""
    if part.type == "image_url" and part.image_url is not None:
        check_address(part.image_url.url, where)
    elif part.type == "text" and part.text is None:
        raise ApiError(400, "a part of type 'text' lacks its text", param=where, code="invalid_value")
    elif part.type != "text" or part.image_url is not None:
        reason = f"a part of type {part.type[:40]!r}: this server reads parts of type 'text' and 'image_url' alone"
        raise ApiError(400, reason, param=where, code="unsupported_content")


class _Scored(BaseModel, ABC):
    token: str
    logprob: float
    bytes: list[int]
    id: int | None = Field(None, description="Where return_token_ids asks for it.")


class TokenLogprob(_Scored):
    """One token, in nats."""


class ContentLogprob(_Scored):
    """One token of the answer, and the most probable ones in its place."""

    top_logprobs: list[TokenLogprob]


class ChatLogprobs(BaseModel):
    """The tokens of an answer."""

    content: list[ContentLogprob]


class AnswerMessage(BaseModel):
    """What the model says, or the functions that it calls."""

    role: Literal["assistant"]
    content: str | None
    tool_calls: list[ToolCall] | None = None
    function_call: CalledFunction | None = Field(None, description="The one call, where functions were sent.")
    refusal: str | None = None


class ChatChoice(BaseModel):
    """One answer."""

    index: int
    message: AnswerMessage
    logprobs: ChatLogprobs | None
    finish_reason: Literal["stop", "length", "tool_calls", "function_call"]


class ChatCompletion(BaseModel):
    """The answer of ``/v1/chat/completions``."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[ChatChoice]
    usage: Usage
