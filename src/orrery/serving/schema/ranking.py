"""The body of ``/v1/rerank``, as clients of Cohere, Jina and vLLM send it, and its answer."""

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from orrery.schema.writing import MOST_TOKENS
from orrery.serving.schema.fields import Body, Flag, Text
from orrery.serving.schema.reading import MOST_INPUTS, Given, ReadingUsage


class RankedDocument(BaseModel):
    """A document as an object; fields beside its text are not read."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    text: Text


class RerankRequest(Body):
    """A query and documents that are to be put in order."""

    UNSUPPORTED: ClassVar = {
        "rank_fields": "documents are texts, or objects with a text",
        "max_chunks_per_doc": "a document is read in one piece",
        "max_tokens_per_doc": "query and document are cut to the model's rows together",
        "truncate_prompt_tokens": "query and document are cut to the model's rows",
    }
    NEUTRAL: ClassVar = {"rank_fields": (["text"],), "max_chunks_per_doc": (1,), "truncate_prompt_tokens": (-1,)}

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
