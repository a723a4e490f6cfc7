"""The fields that several requests share, with closed ranges: nothing is rounded, cut or guessed."""

from abc import ABC
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StrictBool, Tag, model_validator

from orrery.schema.writing import DRAWING, at
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


MOST_STOPS, MOST_LOGPROBS = 16, 20
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
