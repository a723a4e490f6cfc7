"""The fields that several requests share, with closed ranges: nothing is rounded, cut or guessed."""

from abc import ABC
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StrictBool, Tag, model_validator

from orrery.schema.writing import DRAWING, MOST_TOKENS, at
from orrery.schema.writing_fields import with_settings
from orrery.serving.errors import ApiError

Whole = Annotated[int, Field(strict=True)]
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Text = Annotated[str, Field(strict=True)]
Flag = StrictBool
Seed = Annotated[int, Field(strict=True, ge=-(2**63), lt=2**63)]
Stop = Annotated[str, Field(strict=True, min_length=1, max_length=1_000)]
TokenId = Annotated[int, Field(strict=True, ge=0, lt=2**31)]


def text_or_list(value: Any) -> str | None:
    """Return which of the two a field is that may be a text or a list."""
    return "text" if isinstance(value, str) else "list" if isinstance(value, list) else None


MOST_STOPS, MOST_CHOICES, MOST_LOGPROBS, MOST_BIASES, MOST_PREFIX = 16, 128, 20, 1_024, 1 << 20
DRAWN = tuple(name for name in DRAWING if name in at("http"))
"""The settings of writing that say how a token is chosen."""

Stops = Annotated[
    Annotated[Stop, Tag("text")] | Annotated[list[Stop], Field(max_length=MOST_STOPS), Tag("list")],
    Discriminator(text_or_list, "stop", "it is a text or a list of texts"),
]


class Body(BaseModel, ABC):
    """The body of a request: unknown fields are ignored, as OpenAI does; known ones that cannot be done are refused.

    Attributes:
        UNSUPPORTED: fields that ask for something that is not done, with what to do instead.
        NEUTRAL: the values with which they ask for nothing.
        HARMLESS: fields of the interface that change nothing here, each with the reason.
    """

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False, protected_namespaces=())

    UNSUPPORTED: ClassVar[Mapping[str, str]] = {}
    NEUTRAL: ClassVar[Mapping[str, tuple[Any, ...]]] = {}
    HARMLESS: ClassVar[Mapping[str, str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _refuse_unsupported(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            for name, instead in cls.UNSUPPORTED.items():
                value = given.get(name)
                if value is not None and value not in cls.NEUTRAL.get(name, ()):
                    message = f"{name} is not supported: {instead}"
                    raise ApiError(400, message, param=name, code="unsupported_parameter")
        return given


_SESSION = "whatever begins as an earlier prompt did goes on from its session"
OF_A_SERVICE: Mapping[str, str] = {
    "user": "nothing depends on who asks",
    "safety_identifier": "nothing depends on who asks",
    "service_tier": "there is one",
    "prompt_cache_key": _SESSION,
    "prompt_cache_options": _SESSION,
    "prompt_cache_retention": _SESSION,
}
"""Fields of OpenAI's interfaces that are for its service and change nothing here."""


class RequestPart(BaseModel, ABC):
    """A part of a request, whose unknown fields are ignored."""

    model_config = ConfigDict(frozen=True)


class StreamOptions(BaseModel):
    """What a stream tells beside the answer."""

    include_usage: Flag = False


@with_settings(*DRAWN, strict=True)
class SamplingFields(Body, ABC):
    """How a token is chosen, when an answer ends, and how many there are.

    What is left out is as the model's generation_config.json says, where that asks for draws; else the temperature is
    1.
    """

    model: Text | None = None
    seed: Seed | None = None
    stop: Stops | None = None
    n: Annotated[int, Field(strict=True, ge=1, le=MOST_CHOICES)] | None = None
    stream: Flag | None = None
    stream_options: StreamOptions | None = None
    user: Text | None = Field(None, description="Taken and not used.")
    bad_words: Annotated[list[Stop], Field(max_length=64)] | None = Field(
        None, description="What must not stand in the answer, however tokens cut it."
    )
    prefix_ids: Annotated[list[TokenId], Field(max_length=MOST_PREFIX)] | None = Field(
        None, description="Tokens that the answer begins with; what is told is what stands behind them."
    )
    return_token_ids: Flag | None = Field(None, description="With logprobs: tell the id of each token as well.")
    min_tokens: Annotated[int, Field(strict=True, ge=0, le=MOST_TOKENS)] | None = Field(
        None, description="Tokens before which no answer ends by itself."
    )
    ignore_eos: Flag | None = Field(None, description="Go on behind the model's own end, as measurements of speed do.")
    stop_token_ids: Annotated[list[TokenId], Field(max_length=64)] | None = Field(
        None, description="Tokens that end an answer, beside the model's own."
    )

    @property
    def drawing(self) -> dict[str, Any]:
        """How a token is chosen, as far as the request says it."""
        return {name: value for name in DRAWN if (value := getattr(self, name)) is not None}

    @property
    def stops(self) -> list[str]:
        """The strings that end an answer."""
        return [self.stop] if isinstance(self.stop, str) else list(self.stop or ())

    @property
    def choices(self) -> int:
        """How many answers a prompt has."""
        return self.n or 1

    @property
    def has_form(self) -> bool:
        """Whether the answer must be of a form, which may take long to be made ready."""
        return False

    @model_validator(mode="after")
    def _check_biases(self) -> "SamplingFields":
        if len(self.drawing.get("logit_bias", ())) > MOST_BIASES:
            raise ApiError(400, f"logit_bias may have {MOST_BIASES:,} tokens", param="logit_bias")
        return self

    @model_validator(mode="after")
    def _check_stream_options(self) -> "SamplingFields":
        if self.stream_options is not None and not self.stream:
            raise ApiError(400, "stream_options is for stream: true alone", param="stream_options")
        return self

    @property
    def prefix(self) -> list[int]:
        """The tokens that the answer begins with."""
        return list(self.prefix_ids or ())
