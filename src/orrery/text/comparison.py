"""Measures of how a tokenizer cuts text: compression, fertility, unknowns."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from orrery.errors import UsageError
from orrery.text.kinds import TOKENIZERS
from orrery.text.tokenizer import Tokenizer
from orrery.text.train import train_tokenizer


@dataclass(frozen=True)
class Measures:
    """Counts of one text in one tokenizer; words are what whitespace separates."""

    vocabulary: int
    bytes: int
    words: int
    tokens: int
    unknown: int

    @property
    def compression(self) -> float:
        """Bytes a token: the more, the shorter the sequences a model reads."""
        return self.bytes / self.tokens if self.tokens else 0.0

    @property
    def fertility(self) -> float:
        """Tokens a word: 1 where every word is one token."""
        return self.tokens / self.words if self.words else 0.0

    @property
    def unknown_rate(self) -> float:
        """Share of the tokens that stand for text outside the vocabulary."""
        return self.unknown / self.tokens if self.tokens else 0.0

    def as_dict(self) -> dict[str, int | float]:
        """Return counts and rates by name, for JSON."""
        rates = {"compression": self.compression, "fertility": self.fertility, "unknown_rate": self.unknown_rate}
        return {**vars(self), **rates}


def measure(tokenizer: Tokenizer, texts: Iterable[str]) -> Measures:
    """Count over all ``texts``, each encoded on its own."""
    counts = [0, 0, 0, 0]
    for text in texts:
        ids = tokenizer.encode(text)
        for place, count in enumerate((len(text.encode()), len(text.split()), len(ids), tokenizer.unknown(ids))):
            counts[place] += count
    return Measures(tokenizer.size, *counts)


def train_all(
    texts: Sequence[str], vocabulary: int, starting: Callable[[str], None]
) -> tuple[dict[str, Tokenizer], Mapping[str, str]]:
    """Train every kind with one size of vocabulary; return them, and why others could not be had.

    ``starting`` is told the name of each kind before its training.
    """
    trained: dict[str, Tokenizer] = {}
    refused: dict[str, str] = {}
    for kind in TOKENIZERS.names():
        starting(kind)
        try:
            trained[kind] = train_tokenizer(kind, texts, vocabulary)
        except UsageError as error:
            refused[kind] = error.message
    return trained, refused
