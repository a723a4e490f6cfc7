"""The text of a comparison: what all models learn and are measured on."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.checkpoints.outputs import OutputFolder
from orrery.data.corpora import Document, corpus_fingerprint
from orrery.errors import DataError
from orrery.text.tokenizer import FILES, Tokenizer, load_tokenizer
from orrery.training.assemble_text import Portion, encode, joined, read_portions
from orrery.training.assemble_text import texts as texts_of
from orrery.training.building import make_tokenizer
from orrery.training.config import Recipe

Ids = NDArray[np.uint32]


@dataclass(frozen=True)
class Texts:
    """What all models learn and are measured on."""

    portions: list[Portion]
    held_back: list[Document]
    tokenizer: Tokenizer
    train_ids: list[Ids]
    held_back_ids: list[Ids]

    @property
    def size(self) -> int:
        """The bytes of the text held back."""
        return sum(len(document.text.encode()) for document in self.held_back)

    @property
    def held_back_tokens(self) -> int:
        """The tokens of the text held back, the ends of documents among them."""
        return sum(map(len, self.held_back_ids))

    def facts(self, source: str) -> dict[str, Any]:
        """Return what the page and the JSON file say of the text."""
        train = joined(self.portions)
        return {
            "source": source,
            "fingerprint": corpus_fingerprint([*train, *self.held_back]),
            "train_bytes": sum(len(document.text.encode()) for document in train),
            "train_tokens": sum(map(len, self.train_ids)),
            "held_back_bytes": self.size,
            "held_back_tokens": self.held_back_tokens,
            "vocabulary": self.tokenizer.size,
        }

    def perplexity(self, bits_per_byte: float) -> float:
        """Return the perplexity of a token that a number of bits per byte means."""
        return math.exp(min(700.0, bits_per_byte * math.log(2) * self.size / self.held_back_tokens))


def read(base: Recipe, made: Path) -> Texts:
    """Read the text; make the tokenizer on its training part alone, or take the one made before.

    Raises:
        DataError: no text is held back.
    """
    portions, held_back = read_portions(base.text)
    if not any(document.text for document in held_back):
        raise DataError("no text is held back to measure on", "give --data.split '{tail: 0.1}', or more documents")
    if (made / FILES[0]).exists():
        tokenizer = load_tokenizer(made)
    else:
        tokenizer = make_tokenizer(base.tokenizer, texts_of(joined(portions)))
        with OutputFolder(made).aside() as fresh:
            tokenizer.save(fresh)
    ids = [encoded for portion in portions for encoded in encode(tokenizer, portion.documents)]
    return Texts(portions, held_back, tokenizer, ids, encode(tokenizer, held_back))
