"""The bodies of requests that read whole rows: embeddings, classes, tags and translations."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from orrery.schema.writing import MOST_TOKENS, at, beams_of
from orrery.schema.writing_fields import with_settings
from orrery.serving.errors import ApiError
from orrery.serving.schema.fields import Body, Flag, Text, TokenId

MOST_INPUTS, MOST_LABELS, MOST_BEAMS = 2_048, 256, 32
SEARCH = tuple(at("translate"))
"""The settings of writing that a translation has."""

Given = Annotated[str, Field(strict=True, min_length=1)]
Ids = Annotated[list[TokenId], Field(min_length=1, max_length=1 << 20)]
Texts = Given | Annotated[list[Given], Field(min_length=1, max_length=MOST_INPUTS)]
Rows = Texts | Ids | Annotated[list[Ids], Field(min_length=1, max_length=MOST_INPUTS)]
Label = Annotated[str, Field(strict=True, min_length=1, max_length=1_000)]


def items_of(given: Any) -> list[str | list[int]]:
    """Return the inputs of ``Rows``: a text, or a list of ids, is one; a list of either are several."""
    if isinstance(given, str):
        return [given]
    return [list(given)] if isinstance(given[0], int) else list(given)


class EmbeddingsRequest(Body):
    """Texts, or the ids of their tokens, to be turned into vectors."""

    UNSUPPORTED: ClassVar = {"truncate_prompt_tokens": '"truncation": true keeps the beginning of what is too long'}
    NEUTRAL: ClassVar = {"truncate_prompt_tokens": (-1,)}

    model: Text | None = None
    input: Rows
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Field(strict=True, ge=1, le=MOST_TOKENS)] | None = Field(
        None, description="Numbers of a vector; a model has one width, and any other is refused."
    )
    truncation: Flag | None = Field(
        None,
        description="Cut inputs that are longer than the context; done by default where the model's folder says how "
        "long rows are.",
    )
    prompt_name: Text | None = Field(None, description="The name of one of the prompts of the model's folder.")
    user: Text | None = Field(None, description="Taken and not used.")


class TextPair(BaseModel):
    """Two texts that are read beside each other."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: Given
    text_pair: Given


class ClassifyRequest(Body):
    """Texts, or pairs of texts, to be given labels."""

    model: Text | None = None
    input: Given | TextPair | Annotated[list[Given | TextPair], Field(min_length=1, max_length=MOST_INPUTS)]
    top_k: Annotated[int, Field(strict=True, ge=1, le=MOST_TOKENS)] | None = Field(
        None, description="Labels a text, the most probable first; all of them where it is left out."
    )
    candidate_labels: Annotated[list[Label], Field(min_length=1, max_length=MOST_LABELS)] | None = Field(
        None, description="Of a model of entailment: which of these fits, without its having been trained on them."
    )
    multi_label: Flag = Field(False, description="With candidate_labels: several may be true of a text.")
    truncation: Flag = Field(False, description="Cut texts that are longer than the context.")

    @model_validator(mode="after")
    def _check_multi_label(self) -> "ClassifyRequest":
        if self.multi_label and self.candidate_labels is None:
            raise ApiError(400, "multi_label counts with candidate_labels alone", param="multi_label")
        return self


class TagRequest(Body):
    """Texts whose tokens are to be given labels."""

    model: Text | None = None
    input: Texts
    aggregation_strategy: Literal["none", "simple", "first", "average", "max"] = Field(
        "simple", description="How tokens become entities; none leaves them alone."
    )
    ignore_labels: Annotated[tuple[Text, ...], Field(max_length=MOST_LABELS)] = ("O",)
    stride: Annotated[int, Field(strict=True, ge=0, le=MOST_TOKENS)] | None = Field(
        None, description="Read texts that are longer than the context in windows that share so many tokens."
    )
    truncation: Flag = Field(False, description="Cut texts that are longer than the context.")

    @model_validator(mode="after")
    def _check_stride(self) -> "TagRequest":
        if self.stride is not None and self.aggregation_strategy == "none":
            raise ApiError(400, "windows with stride need entities: choose an aggregation_strategy", param="stride")
        return self


@with_settings(*SEARCH, strict=True)
class TranslateRequest(Body):
    """Sentences of the source language."""

    UNSUPPORTED: ClassVar = {"stream": "a search over beams knows its answer only at its end; /v1/completions streams"}
    NEUTRAL: ClassVar = {"stream": (False,)}

    model: Text | None = None
    input: Texts
    max_tokens: Annotated[int, Field(strict=True, ge=1, le=MOST_TOKENS)] = Field(
        128, description="The most tokens of a translation."
    )
    source_language: Text | None = Field(None, description="Of the texts, for a model of many: en, eng_Latn, en_XX.")
    target_language: Text | None = Field(None, description="Of the translations; by default the model's files say.")

    @property
    def search(self) -> dict[str, Any]:
        """How translations are searched for, as far as the request says it."""
        return {name: getattr(self, name) for name in SEARCH}

    @model_validator(mode="after")
    def _check_beams(self) -> "TranslateRequest":
        if beams_of(self.search) > MOST_BEAMS:
            raise ApiError(400, f"{SEARCH[0]} may be {MOST_BEAMS} at most", param=SEARCH[0])
        return self


class ReadingUsage(BaseModel):
    """What was read, in tokens."""

    prompt_tokens: int
    total_tokens: int


class EmbeddingVector(BaseModel):
    """The vector of one input: numbers, or little-endian float32 in base64."""

    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class EmbeddingList(BaseModel):
    """The answer of ``/v1/embeddings``."""

    id: str
    object: Literal["list"]
    data: list[EmbeddingVector]
    model: str
    usage: ReadingUsage


class Scored(BaseModel):
    """A label and its probability, or the number that a head of one number gives."""

    label: str
    score: float


class LabelledInput(BaseModel):
    """The labels of one input, the most probable first."""

    index: int
    labels: list[Scored]


class ClassList(BaseModel):
    """The answer of ``/v1/classify``."""

    object: Literal["list"]
    data: list[LabelledInput]
    model: str


class TaggedInput(BaseModel):
    """The entities of one input: label, probability, words, and from which character to which they stand."""

    index: int
    entities: list[dict[str, Any]]


class TagList(BaseModel):
    """The answer of ``/v1/tag``."""

    object: Literal["list"]
    data: list[TaggedInput]
    model: str


class TranslatedInput(BaseModel):
    """The translation of one input."""

    index: int
    text: str


class TranslationList(BaseModel):
    """The answer of ``/v1/translate``."""

    object: Literal["list"]
    data: list[TranslatedInput]
    model: str
