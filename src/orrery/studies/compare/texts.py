"""The text of a comparison: what all models learn and are measured on."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.checkpoints.outputs import OutputFolder
from orrery.data.documents import Portion, encode, joined
from orrery.data.records import Document
from orrery.data.sources.text import TextSource, text_of
from orrery.data.splits import split_tail
from orrery.errors import DataError
from orrery.recipes.config import Recipe
from orrery.runs.building import possible_tokenizer
from orrery.studies.kept import Say
from orrery.text.tokenizer import FILES, Tokenizer, load_tokenizer

Ids = NDArray[np.uint32]
CHOOSING = 0.05
"""The end of each training document that the trials of a sweep are judged on, and learn nothing of."""
JUDGED = 65_536
"""At most so many characters of it are read for a judgement, from documents at even distances."""


@dataclass(frozen=True)
class Texts:
    """What all models learn and are measured on.

    ``trials`` is the training text without the end of each document, which it holds back: what is chosen, a learning
    rate or the order of n-grams, is chosen there, and never on the text held back for the table.
    """

    source: TextSource
    tokenizer: Tokenizer
    train_ids: list[Ids]
    held_back_ids: list[Ids]
    trials: TextSource

    def choosing_ids(self) -> list[Ids]:
        """Return the ids that trials are judged on."""
        return encode(self.tokenizer, self.trials.held_back)

    def head_ids(self) -> list[Ids]:
        """Return the ids that trials learn."""
        return [ids for portion in self.trials.portions for ids in encode(self.tokenizer, portion.documents)]

    @property
    def choosing_size(self) -> int:
        """The bytes that trials are judged on."""
        return sum(len(document.text.encode()) for document in self.trials.held_back)

    @property
    def nats_per_bit(self) -> float:
        """What a bit per byte is in nats a character."""
        characters = sum(len(document.text) for document in self.source.held_back)
        return math.log(2) * self.size / characters

    @property
    def size(self) -> int:
        """The bytes of the text held back."""
        return sum(len(document.text.encode()) for document in self.source.held_back)

    @property
    def held_back_tokens(self) -> int:
        """The tokens of the text held back, the ends of documents among them."""
        return sum(map(len, self.held_back_ids))

    def facts(self, base: Recipe) -> dict[str, Any]:
        """Return what the page and the JSON file say of the text."""
        train, characters = joined(self.source.portions), base.tokenizer and base.tokenizer.kind == "character"
        return {
            "source": base.data.described,
            "fingerprint": self.source.fingerprint,
            "train_bytes": sum(len(document.text.encode()) for document in train),
            "train_tokens": sum(map(len, self.train_ids)),
            "held_back_bytes": self.size,
            "held_back_tokens": self.held_back_tokens,
            "choosing_bytes": self.choosing_size,
            "vocabulary": self.tokenizer.size,
            "nats_per_bit": self.nats_per_bit if characters else None,
        }

    def perplexity(self, bits_per_byte: float) -> float:
        """Return the perplexity of a token that a number of bits per byte means."""
        return math.exp(min(700.0, bits_per_byte * math.log(2) * self.size / self.held_back_tokens))


def read(base: Recipe, made: Path, say: Say) -> Texts:
    """Read the text; make the tokenizer on its training part alone, or take the one made before.

    All share the tokenizer, so that one smaller than the recipe asks for still compares: ``say`` is told of it.

    Raises:
        DataError: no text is held back.
    """
    say(f"reading {base.data.described}")
    source = TextSource.read(text_of(base.data, base.name))
    if not any(document.text for document in source.held_back):
        raise DataError("no text is held back to measure on", "give --data.split '{tail: 0.1}', or more documents")
    if (made / FILES[0]).exists():
        tokenizer = load_tokenizer(made)
    else:
        tokenizer = possible_tokenizer(base.tokenizer, source.texts())
        with OutputFolder(made).aside() as fresh:
            tokenizer.save(fresh)
    wanted = None if base.tokenizer is None else base.tokenizer.vocabulary
    if wanted is not None and tokenizer.size < wanted:
        say(f"the text gives {tokenizer.size:,} tokens, fewer than tokenizer.vocabulary, {wanted:,}")
    ids = [encoded for portion in source.portions for encoded in encode(tokenizer, portion.documents)]
    return Texts(source, tokenizer, ids, encode(tokenizer, source.held_back), for_trials(source))


def for_trials(source: TextSource) -> TextSource:
    """Return the training text without the end of each document, some of whose ends are held back in turn."""
    portions, ends = [], []
    for portion in source.portions:
        cut = [(document.name, split_tail(document.text, CHOOSING)) for document in portion.documents]
        portions.append(Portion(portion.name, portion.weight, [Document(name, head) for name, (head, _) in cut]))
        ends += [Document(name, tail) for name, (_, tail) in cut if tail]
    return TextSource(portions, judged(ends), source.mixed)


def judged(ends: list[Document]) -> list[Document]:
    """Return documents at even distances that have `JUDGED` characters at most, the last of them cut if need be."""
    stride = max(1, -(-sum(len(document.text) for document in ends) // JUDGED))
    kept, left = [], JUDGED
    for document in ends[::stride]:
        if left > 0:
            kept.append(Document(document.name, document.text[:left]))
            left -= len(document.text)
    return kept
