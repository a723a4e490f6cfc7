"""``POST /v1/completions``: what is asked, and what is answered."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Discriminator, Field, Tag, model_validator

from orrery.schema.writing import MOST_TOKENS
from orrery.serving.errors import ApiError
from orrery.serving.schema.chat import ContentLogprob
from orrery.serving.schema.fields import MOST_LOGPROBS, Flag, Text, TokenId
from orrery.serving.schema.sampling import SamplingFields
from orrery.serving.usage import Usage

Row = Annotated[list[TokenId], Field(min_length=1)]


def _kind(prompt: Any) -> str | None:
    """Return which of the four kinds a prompt is; its first element decides."""
    if isinstance(prompt, str):
        return "text"
    if not isinstance(prompt, list):
        return None
    first = prompt[0] if prompt else ""
    return "texts" if isinstance(first, str) else "rows" if isinstance(first, list) else "ids"


Prompt = Annotated[
    Annotated[Text, Tag("text")]
    | Annotated[list[Text], Field(min_length=1), Tag("texts")]
    | Annotated[Row, Tag("ids")]
    | Annotated[list[Row], Field(min_length=1), Tag("rows")],
    Discriminator(_kind, "prompt", "it is a text, a list of texts, a list of ids, or a list of such lists"),
]


class CompletionRequest(SamplingFields):
    """A prompt, or several, to continue."""

    UNSUPPORTED: ClassVar = {
        **SamplingFields.UNSUPPORTED,
        "prompt_embeds": "send a text or token ids",
        "add_special_tokens": "send the ids of the tokens that the model is to read",
        "messages": "/v1/chat/completions answers a conversation",
        "chat_template_kwargs": "/v1/chat/completions reads through the template",
        "reasoning_effort": "/v1/chat/completions reads through the template",
        "top_logprobs": "send the number as logprobs",
    }
    NEUTRAL: ClassVar = {**SamplingFields.NEUTRAL, "add_special_tokens": (True,), "chat_template_kwargs": ({},)}

    prompt: Prompt = Field(description="A text, a list of texts, a list of token ids, or a list of such lists.")
    max_tokens: Annotated[int, Field(strict=True, ge=0, le=MOST_TOKENS)] | None = Field(
        None, description="16 where it is left out; 0 with echo reads the prompt alone."
    )
    suffix: Text | None = Field(
        None, description="What stands behind the answer; for models whose tokenizer has tokens for filling in."
    )
    echo: Flag | None = None
    logprobs: Annotated[int, Field(strict=True, ge=0, le=MOST_LOGPROBS)] | None = None
    best_of: Annotated[int, Field(strict=True, ge=1, le=128)] | None = None

    @property
    def drawn(self) -> int:
        """How many answers a prompt is given, of which the best ``n`` are told."""
        return max(self.best_of or 1, self.choices)

    @model_validator(mode="after")
    def _check_together(self) -> "CompletionRequest":
        if self.best_of is not None and self.best_of < self.choices:
            raise ApiError(400, f"best_of = {self.best_of} is less than n = {self.choices}", param="best_of")
        if self.stream and self.drawn > self.choices:
            raise ApiError(400, "best_of cannot be streamed: which is the best shows at the end", param="best_of")
        if self.max_tokens == 0 and not self.echo:
            raise ApiError(400, "max_tokens = 0 is for echo: true alone", param="max_tokens")
        if self.prefix and self.echo:
            raise ApiError(400, "echo is for prompts without prefix_ids", param="prefix_ids")
        form = self.response_format
        if form is not None and form.type != "text":
            others = ("prefix_ids", "echo", "suffix", "min_tokens", "ignore_eos")
            if beside := next((name for name in others if getattr(self, name)), None):
                raise ApiError(400, f"response_format is for prompts without {beside}", param=beside)
        if self.suffix and self.echo:
            raise ApiError(400, "echo is for prompts without a suffix", param="suffix")
        return self


class Logprobs(BaseModel):
    """The tokens of an answer and their log probabilities, in nats."""

    tokens: list[str]
    token_logprobs: list[float | None]
    top_logprobs: list[dict[str, float] | None]
    text_offset: list[int]
    content: list[ContentLogprob] | None = Field(None, description="As a chat tells them, with return_token_ids.")


class CompletionChoice(BaseModel):
    """One answer."""

    index: int
    text: str
    logprobs: Logprobs | None
    finish_reason: Literal["stop", "length"] | None


class Completion(BaseModel):
    """The answer of ``/v1/completions``; in a stream, a part of it."""

    id: str
    object: Literal["text_completion"]
    created: int
    model: str
    system_fingerprint: str
    choices: list[CompletionChoice]
    usage: Usage | None = None
