"""The fields of every request that writes: how a token is chosen, what the answer is, and when it ends."""

from abc import ABC
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from orrery.schema.writing import MOST_TOKENS
from orrery.schema.writing_fields import with_settings
from orrery.serving.errors import ApiError
from orrery.serving.schema import other_names
from orrery.serving.schema.answer_form import ResponseFormat, with_response_format
from orrery.serving.schema.fields import DRAWN, Body, Flag, Seed, Stop, Stops, Text, TokenId

MOST_CHOICES, MOST_BIASES, MOST_PREFIX = 128, 1_024, 1 << 20


class StreamOptions(Body):
    """What a stream tells beside the answer."""

    UNSUPPORTED: ClassVar = {"continuous_usage_stats": "include_usage tells the counts at the end"}
    NEUTRAL: ClassVar = {"continuous_usage_stats": (False,)}
    HARMLESS: ClassVar = {"include_obfuscation": "nothing is put beside an event to hide its length"}

    include_usage: Flag = False


@with_settings(*DRAWN, strict=True)
class SamplingFields(Body, ABC):
    """How a token is chosen, when an answer ends, and how many there are.

    What is left out is as the model's generation_config.json says, where that asks for draws; else the temperature is
    1.
    """

    UNSUPPORTED: ClassVar = {name: instead for name, (_, instead) in other_names.UNSUPPORTED.items()}
    NEUTRAL: ClassVar = {name: neutral for name, (neutral, _) in other_names.UNSUPPORTED.items()}
    HARMLESS: ClassVar = other_names.HARMLESS

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

    response_format: ResponseFormat | None = Field(None, description="What the answer looks like.")

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
        return self.response_format is not None and self.response_format.type != "text"

    @model_validator(mode="before")
    @classmethod
    def _of_other_servers(cls, given: Any) -> Any:
        return with_response_format(with_our_names(given)) if isinstance(given, Mapping) else given

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


def with_our_names(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a request whose settings stand under our names.

    Raises:
        ApiError: one setting comes under two names.
    """
    own: dict[str, Any] = {"tool_choice": "required"} if given.get("tool_choice") == "any" else {}
    for name, ours in other_names.RENAMED.items():
        if (value := given.get(name)) is None:
            continue
        if ours in own or given.get(ours) is not None:
            raise ApiError(400, f"{name} is {ours} by another name: send one of them", param=name)
        own[ours] = value
    if "repeat_penalty" in given or "repeat_last_n" in given:
        window = own.pop("repetition_window", given.get("repetition_window"))
        back = other_names.looked_back(window, "repetition_penalty" in own)
        own |= {"repetition_window": None, **back}
    return {**given, **own} if own else given
