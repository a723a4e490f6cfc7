"""What a kind of tokenizer is: how it learns from texts, and what sizes it can have."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from orrery.schema.registry import Registry

if TYPE_CHECKING:
    import tokenizers


class TokenizerKind(ABC):
    """A kind of tokenizer that can be trained; what it learns is a ``tokenizers.Tokenizer``, saved as tokenizer.json.

    So a trained one is read by every program, also where the kind itself is not known.

    Attributes:
        kind: its name in recipes and on the command line.
        vocabulary: the number of ids where none is given; ``None`` keeps all that the corpus has.
        least: the fewest ids that it can have, the end token among them.
        holds: what these are, for a message.
        exact: it gives back every byte of a text, so that no text may be turned into lower case first.
    """

    kind: ClassVar[str]
    vocabulary: ClassVar[int | None] = 4096
    least: ClassVar[int] = 3
    holds: ClassVar[str] = "the characters"
    exact: ClassVar[bool] = False

    @staticmethod
    @abstractmethod
    def train(texts: Iterator[str], vocabulary: int, end: str) -> "tokenizers.Tokenizer":
        """Learn from texts, which can be read once.

        Args:
            texts: a part of the corpus each; no text is longer than a chunk.
            vocabulary: how many ids there may be, the end token among them.
            end: the end token; it is a control token, which no text that spells it gets.

        Raises:
            UsageError: the vocabulary is too small for the corpus.
        """


TOKENIZERS: Registry[TokenizerKind] = Registry("kind of tokenizer", "orrery.text.kinds")
register = TOKENIZERS.register
