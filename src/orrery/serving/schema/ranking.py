"""The body of ``/v1/rerank``, as clients of Cohere, Jina and vLLM send it, and its answer."""

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from orrery.schema.writing import MOST_TOKENS
from orrery.serving.errors import ApiError
from orrery.serving.schema.fields import Body, Flag, Text
from orrery.serving.schema.reading import MOST_INPUTS, Given, ReadingUsage


class RankedDocument(BaseModel):
    """A document as an object; fields beside its text are not read."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    text: Text


class RerankRequest(Body):
    """A query and documents that are to be put in order."""

    UNSUPPORTED: ClassVar = {
        "top_k": "send top_n",
        "max_doc_length": "query and document are cut to the model's rows together",
        "rank_fields": "documents are texts, or objects with a text",
        "max_chunks_per_doc": "a document is read in one piece",
        "max_tokens_per_doc": "query and document are cut to the model's rows together",
        "truncate_prompt_tokens": "query and document are cut to the model's rows",
    }
    NEUTRAL: ClassVar = {"rank_fields": (["text"],), "max_chunks_per_doc": (1,), "truncate_prompt_tokens": (-1,)}

    HARMLESS: ClassVar = {"priority": "requests are answered in the order in which they come"}

    model: Text | None = None
    query: Given
    documents: Annotated[list[Text | RankedDocument], Field(min_length=1, max_length=MOST_INPUTS)]
    top_n: Annotated[int, Field(strict=True, ge=0, le=MOST_TOKENS)] | None = Field(
        None, description="Documents that are told; all of them where it is left out or 0."
    )
    return_documents: Flag | None = Field(None, description="Tell each document's text too; done unless false.")
    truncation: Flag = Field(True, description="Cut a query and a document that are longer than a row.")
    prompt_name: Text | None = Field(None, description="The name of one of the prompts of the model's folder.")
    user: Text | None = Field(None, description="Taken and not used.")

    @property
    def texts(self) -> list[str]:
        """The texts of the documents."""
        return [one if isinstance(one, str) else one.text for one in self.documents]


class Reranked(BaseModel):
    """A document in its place: its number among those sent, its score, and its text where asked for."""

    index: int
    relevance_score: float
    document: RankedDocument | None = None


class RankedList(BaseModel):
    """The answer of ``/v1/rerank``, the best document first."""

    id: str
    object: Literal["list"]
    model: str
    results: list[Reranked]
    usage: ReadingUsage


_Texts = Given | Annotated[list[Given], Field(min_length=1, max_length=MOST_INPUTS)]
_PAIRS = (("text_1", "text_2"), ("queries", "documents"), ("data_1", "data_2"))


class ScoreRequest(Body):
    """Texts and those that they are compared with, under one of the three pairs of names that vLLM reads."""

    UNSUPPORTED: ClassVar = {"truncate_prompt_tokens": "texts are cut to the model's rows"}
    NEUTRAL: ClassVar = {"truncate_prompt_tokens": (-1,)}
    HARMLESS: ClassVar = {"priority": "requests are answered in the order in which they come"}

    model: Text | None = None
    text_1: _Texts | None = None
    text_2: _Texts | None = None
    queries: _Texts | None = None
    documents: _Texts | None = None
    data_1: _Texts | None = None
    data_2: _Texts | None = None
    truncation: Flag = Field(True, description="Cut texts that are longer than a row.")

    @property
    def names(self) -> tuple[str, str]:
        """The two fields that hold the texts."""
        return next(pair for pair in _PAIRS if any(getattr(self, name) is not None for name in pair))

    @property
    def both(self) -> tuple[list[str], list[str]]:
        """The first texts, and the second ones."""
        first, second = (getattr(self, name) for name in self.names)
        return ([first] if isinstance(first, str) else first), ([second] if isinstance(second, str) else second)

    @model_validator(mode="after")
    def _check_both(self) -> "ScoreRequest":
        sent = [name for pair in _PAIRS for name in pair if getattr(self, name) is not None]
        if tuple(sent) not in _PAIRS:
            raise ApiError(
                400, "send text_1 and text_2, or queries and documents", param=sent[-1] if sent else "text_1"
            )
        return self


class PairedScore(BaseModel):
    """The score of a pair."""

    index: int
    object: Literal["score"]
    score: float


class ScoreList(BaseModel):
    """The answer of ``/v1/score``."""

    id: str
    object: Literal["list"]
    created: int
    model: str
    data: list[PairedScore]
    usage: ReadingUsage
