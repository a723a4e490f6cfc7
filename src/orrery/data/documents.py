"""The documents of one or several corpora, those held back apart, and their ids."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orrery.data.records import Document
from orrery.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from orrery.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Portion:
    """The training documents of one corpus, its name and its weight in the mixture."""

    name: str
    weight: float
    documents: list[Document]


def joined(portions: Sequence[Portion]) -> list[Document]:
    """Return the training documents of all corpora."""
    return [document for portion in portions for document in portion.documents]


def texts(documents: Iterable[Document]) -> Iterator[str]:
    """Yield what the documents say."""
    return (document.text for document in documents)


def unknown_share(tokenizer: "Tokenizer", rows: "Sequence[Sequence[int] | NDArray[np.uint32]]") -> list[str]:
    """Say what share of the tokens stands for text that the tokenizer does not know; nothing below one in a thousand.

    Such a tokenizer is another model's, or was trained on another text: the loss would look small and mean little.
    """
    import numpy as np

    tokens, id = sum(map(len, rows)), tokenizer.unknown_id
    unknown = 0 if id is None else sum(int(np.count_nonzero(np.asarray(row) == id)) for row in rows)
    if 1000 * unknown < max(1, tokens):
        return []
    return [f"{unknown / tokens:.1%} of the training tokens stand for text that the tokenizer does not know"]


def encode(tokenizer: "Tokenizer", documents: Sequence[Document]) -> "list[NDArray[np.uint32]]":
    """Return each document's ids behind what opens one, with the end token behind them."""
    import numpy as np

    opening, end = tokenizer.document_opening, tokenizer.special("end")
    encoded = tokenizer.encode_batch([document.text for document in documents])
    return [np.asarray([*opening, *ids, end], np.uint32) for ids in encoded]


def stream(documents: "Sequence[NDArray[np.uint32]]") -> "NDArray[np.uint32]":
    """Return all documents one after another.

    Raises:
        DataError: there is none.
    """
    import numpy as np

    if not documents:
        raise DataError("the corpus has 0 documents", "give the recipe's data text to read")
    return np.concatenate(documents)
