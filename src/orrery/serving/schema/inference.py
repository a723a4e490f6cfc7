"""Bodies of text-embeddings-inference, which Hugging Face's clients send too: ``inputs`` in the place of ``input``."""

from abc import ABC
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Discriminator, Field, Tag

from orrery.serving.schema.fields import Body, Flag, RequestPart, Text
from orrery.serving.schema.ranking import RerankRequest
from orrery.serving.schema.reading import MOST_INPUTS, Given, Rows, TextPair


class Reading(Body, ABC):
    """What every one of these bodies may hold."""

    UNSUPPORTED: ClassVar = {
        "truncation_direction": "what is too long loses its end",
        "encoding_format": "/v1/embeddings tells vectors in base64",
        "parameters": "send truncate, normalize and prompt_name beside the texts",
    }
    NEUTRAL: ClassVar = {
        "truncation_direction": ("Right", "right"),
        "encoding_format": ("float",),
        "parameters": ({},),
    }

    truncate: Flag | None = Field(None, description="Cut what is longer than a row.")
    prompt_name: Text | None = Field(None, description="The name of one of the prompts of the model's folder.")


class EmbedRequest(Reading):
    """Texts, or the ids of their tokens, to be turned into vectors."""

    inputs: Rows
    normalize: Flag = Field(True, description="Whether each vector has length 1.")
    dimensions: Annotated[int, Field(strict=True, ge=1)] | None = Field(
        None, description="Numbers of a vector; a model has one width, and any other is refused."
    )


class Alike(RequestPart):
    """A text, and those that it is compared with."""

    source_sentence: Given
    sentences: Annotated[list[Given], Field(min_length=1, max_length=MOST_INPUTS)]


class SimilarityRequest(Body):
    """Texts whose vectors are compared."""

    inputs: Alike
    parameters: dict[str, Any] | None = Field(None, description="truncate and prompt_name, as for vectors.")


def _predicted(given: Any) -> str | None:
    """Return what is to be labelled: a text, one or two texts, or several of these."""
    if isinstance(given, str):
        return "text"
    if not isinstance(given, list):
        return None
    return "several" if given and isinstance(given[0], list) else "pair"


_One = Annotated[list[Given], Field(min_length=1, max_length=2)]


class PredictRequest(Reading):
    """A text, two that are read beside each other, or a list of lists of one or two."""

    UNSUPPORTED: ClassVar = {name: why for name, why in Reading.UNSUPPORTED.items() if name != "parameters"}

    inputs: Annotated[
        Annotated[Given, Tag("text")]
        | Annotated[_One, Tag("pair")]
        | Annotated[list[_One], Field(min_length=1, max_length=MOST_INPUTS), Tag("several")],
        Discriminator(_predicted, "inputs", "it is a text, a list of two texts, or a list of such lists"),
    ]
    raw_scores: Flag = Field(False, description="Tell the head's own numbers.")
    parameters: dict[str, Any] | None = Field(None, description="top_k and function_to_apply, of Hugging Face.")

    @property
    def several(self) -> bool:
        """Whether the answer is a list of answers."""
        return not isinstance(self.inputs, str) and isinstance(self.inputs[0], list)

    @property
    def items(self) -> list[str | TextPair]:
        """The texts and pairs."""
        given: list[Any] = [self.inputs] if isinstance(self.inputs, str) or not self.several else list(self.inputs)
        return [_item(one) for one in given]


class TextsRerankRequest(Reading):
    """A query and texts that are to be put in order."""

    query: Given
    texts: Annotated[list[Text], Field(min_length=1, max_length=MOST_INPUTS)]
    raw_scores: Flag = Field(False, description="Tell the head's own numbers, not what a sigmoid makes of them.")
    return_text: Flag = False
    top_n: Annotated[int, Field(strict=True, ge=0)] | None = Field(
        None, description="Texts that are told, as LiteLLM asks."
    )


def _kind(given: Any) -> str:
    """Return whose body it is that asks to order documents."""
    of_texts = "texts" in given if isinstance(given, Mapping) else isinstance(given, TextsRerankRequest)
    return "of_texts" if of_texts else "of_documents"


AnyRerankRequest = Annotated[
    Annotated[RerankRequest, Tag("of_documents")] | Annotated[TextsRerankRequest, Tag("of_texts")],
    Discriminator(_kind),
]
"""A body of Cohere's, Jina's and vLLM's clients, or one of text-embeddings-inference."""


class Rank(BaseModel):
    """A text in its place."""

    index: int
    score: float
    text: str | None = None


class Predicted(BaseModel):
    """A label and its score."""

    label: str
    score: float


def _item(given: str | list[str]) -> str | TextPair:
    if isinstance(given, str):
        return given
    return given[0] if len(given) == 1 else TextPair(text=given[0], text_pair=given[1])
