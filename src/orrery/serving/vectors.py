"""Vectors of texts for every interface that asks for them."""

from collections.abc import Sequence

from starlette.types import Receive
from torch.nn.functional import cosine_similarity

from orrery.language_model.vectors import TextVector
from orrery.serving.abilities import EMBEDDINGS
from orrery.serving.errors import ApiError
from orrery.serving.reading import BATCH, SHORTER, Done, over_rows
from orrery.serving.served import Served
from orrery.tasks.embedding import Embedding


async def vectors_of(
    served: Served,
    receive: Receive,
    items: Sequence[str | list[int]],
    *,
    truncation: bool | None,
    dimensions: int | None = None,
    prompt: str | None = None,
    normalise: bool | None = None,
    param: str = "input",
    shorter: str = SHORTER,
) -> list[TextVector]:
    """Return the vector of each text: as a folder of sentence-transformers says, else its mean, of length 1.

    Args:
        served: the model.
        receive: tells when the client leaves.
        items: texts, or ids.
        truncation: whether what is too long loses its end; by default where the folder says how long rows are.
        dimensions: how many numbers a vector is to have.
        prompt: the name of one of the folder's prompts.
        normalise: whether a vector has length 1; by default as the folder says, and so where it says nothing.
        param: the field that holds the texts, which errors name.
        shorter: what a client can do about a text that is too long.

    Raises:
        ApiError: the model makes none, or none of that many numbers, or cannot read a text.
    """
    served.require(EMBEDDINGS)
    if normalise is None and not served.lm.sentences.given:
        normalise = True
    names = [""] if len(items) == 1 else None

    def work(done: Done) -> list[TextVector]:
        pipe = Embedding(served.lm, Embedding.kind, BATCH, prompt=prompt, normalise=normalise, truncation=truncation)
        return pipe.several(items, names, done)

    vectors = await over_rows(served, receive, work, param, shorter)
    width = len(vectors[0].vector)
    if dimensions not in (None, width):
        raise ApiError(400, f"this model's vectors have {width} numbers, no others", param="dimensions")
    return vectors


def similar(one: TextVector, other: TextVector) -> float:
    """Return the cosine of two vectors."""
    return float(cosine_similarity(one.vector, other.vector, dim=0))
