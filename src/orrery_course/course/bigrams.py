"""A language model that is a table: the next token depends on the last one, and every text can be counted by hand."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass
class BigramSession:
    """How long each row is."""

    lengths: list[int]

    def select(self, rows: Sequence[int]) -> "BigramSession":
        """Return these rows."""
        return BigramSession([self.lengths[row] for row in rows])


class Bigrams:
    """A model with the decoding protocol whose row ``p_VV[i]`` holds the probabilities behind token ``i``."""

    first_token: int | None = None

    def __init__(self, p_VV: Tensor) -> None:
        self.log_p_VV = p_VV.log()

    def start(
        self, source: Tensor, capacity: int, lengths: Sequence[int] | Tensor | None = None
    ) -> tuple[Tensor, BigramSession]:
        """Return the logits behind the last token of each row."""
        return self.log_p_VV[source[:, -1]], BigramSession([source.shape[1]] * len(source))

    def step(self, tokens: Tensor, session: BigramSession, lengths: Sequence[int] | Tensor | None = None) -> Tensor:
        """Return the logits behind one more token of each row."""
        session.lengths = [length + 1 for length in session.lengths]
        return self.log_p_VV[tokens]


WORDS = ("(begin)", "the", "a", "dog", "cat", "way", "(end)")
TABLE = (
    (0, 0.6, 0.4, 0, 0, 0, 0),
    (0, 0, 0, 0.35, 0.3, 0.35, 0),
    (0, 0, 0, 0.9, 0.1, 0, 0),
    *((0, 0, 0, 0, 0, 0, 1.0),) * 4,
)


def sentences() -> Bigrams:
    """Return a model of two words, in which the likelier first word does not begin the likeliest sentence."""
    return Bigrams(torch.tensor(TABLE, dtype=torch.float64))
