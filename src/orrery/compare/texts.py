"""The text of a comparison: what all models learn and are measured on."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.checkpoints.outputs import OutputFolder
from orrery.data.documents import encode, joined
from orrery.data.sources.text import TextSource, text_of
from orrery.errors import DataError
from orrery.text.tokenizer import FILES, Tokenizer, load_tokenizer
from orrery.training.building import make_tokenizer
from orrery.training.config import Recipe

Ids = NDArray[np.uint32]


@dataclass(frozen=True)
class Texts:
    """What all models learn and are measured on."""

    source: TextSource
    tokenizer: Tokenizer
    train_ids: list[Ids]
    held_back_ids: list[Ids]

    @property
    def size(self) -> int:
        """The bytes of the text held back."""
        return sum(len(document.text.encode()) for document in self.source.held_back)

    @property
    def held_back_tokens(self) -> int:
        """The tokens of the text held back, the ends of documents among them."""
        return sum(map(len, self.held_back_ids))

    def facts(self, source: str) -> dict[str, Any]:
        """Return what the page and the JSON file say of the text."""
        train = joined(self.source.portions)
        return {
            "source": source,
            "fingerprint": self.source.fingerprint,
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
    source = TextSource.read(text_of(base.data, base.name))
    if not any(document.text for document in source.held_back):
        raise DataError("no text is held back to measure on", "give --data.split '{tail: 0.1}', or more documents")
    if (made / FILES[0]).exists():
        tokenizer = load_tokenizer(made)
    else:
        tokenizer = make_tokenizer(base.tokenizer, source.texts())
        with OutputFolder(made).aside() as fresh:
            tokenizer.save(fresh)
    ids = [encoded for portion in source.portions for encoded in encode(tokenizer, portion.documents)]
    return Texts(source, tokenizer, ids, encode(tokenizer, source.held_back))
