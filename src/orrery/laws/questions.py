"""What golden outputs are asked: rows of several lengths, and the few numbers that sum their answers up.

The oracle answers each row alone, we answer all of them as one padded batch: so the law of padding is asked as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from orrery.laws.formula import numbers, whole_numbers

LENGTHS, SOURCES, TARGETS = (14, 9, 3), (11, 7, 2), (8, 5, 3)
"""The tokens of each row; of each source and its target where one is read and the other written."""
FIRST_ID = 3
"""Ids below are control tokens, which some references treat apart."""


@dataclass(frozen=True)
class LawQuestion:
    """One row: its tokens, or a source or an image and the target."""

    ids: Tensor
    source: Tensor | None = None
    token_types: Tensor | None = None


def texts(vocabulary: int, lengths: Sequence[int] = LENGTHS) -> list[Tensor]:
    """Return rows of tokens."""
    return [whole_numbers(f"row {b}", (n,), FIRST_ID, vocabulary) for b, n in enumerate(lengths)]


def sources(vocabulary: int) -> list[Tensor]:
    """Return rows of source tokens."""
    return [whole_numbers(f"source {b}", (n,), FIRST_ID, vocabulary) for b, n in enumerate(SOURCES)]


def images(size: Sequence[int]) -> list[Tensor]:
    """Return images of a size, by formula."""
    return [4 * numbers(f"image {b}", size) for b in range(len(TARGETS))]


def token_types(lengths: Sequence[int] = LENGTHS) -> list[Tensor]:
    """Return the token type of each token: the first five are of one text, the others of a second."""
    return [(torch.arange(n) > 4).long() for n in lengths]


def summary(answers: Sequence[Sequence[Tensor]]) -> dict[str, list[float]]:
    """Return for each row the sum over all its answers, weighted by formula numbers, and its last number as it is.

    A sum over n answers is divided by the root of n, so that it is of the size of one answer.

    Args:
        answers: of each row, what every head says: ``[L, V]`` or ``[V]``.
    """
    sums = [sum(_weighted(f"sum {b} {h}", a) for h, a in enumerate(row)) for b, row in enumerate(answers)]
    return {"sums": sums, "last": [float(row[0].flatten()[-1]) for row in answers]}


def _weighted(name: str, answer: Tensor) -> float:
    return float((answer.cpu() * numbers(name, answer.shape)).sum()) / answer.numel() ** 0.5


def distance(answers: Sequence[Sequence[Tensor]]) -> Tensor:
    """Return the mean square distance of all answers from formula numbers: the loss of what does not write."""
    parts = [
        (a - numbers(f"aim {b} {h}", a.shape).to(a.device)) ** 2
        for b, row in enumerate(answers)
        for h, a in enumerate(row)
    ]
    return torch.cat([part.flatten() for part in parts]).mean()


def slope(gradients: Mapping[str, Tensor]) -> dict[str, float]:
    """Return the norm of all gradients together, and their sum weighted by formula numbers of each tensor's name."""
    norm = sum(float((g.double() ** 2).sum()) for g in gradients.values()) ** 0.5
    return {
        "norm": norm,
        "slope": sum(float((g.cpu() * numbers(f"slope {n}", g.shape)).sum()) for n, g in gradients.items()),
    }


HELD_BACK = 100
"""The number of the first batch that validation sees."""


def lesson(number: int, name: str = "target") -> list[Tensor]:
    """Return the rows of a training batch, of lengths that differ from row to row and from batch to batch."""
    lengths = [2 + (3 * number + 4 * b) % 6 for b in range(3)]
    return [whole_numbers(f"{name} {number} {b}", (n,), FIRST_ID, 61) for b, n in enumerate(lengths)]


def scores() -> tuple[Tensor, Tensor]:
    """Return logits ``[3, 17]`` to sample from, and which tokens each row holds."""
    return 8 * numbers("scores", (3, 17)), numbers("seen", (3, 17)) > 0.2


def table() -> Tensor:
    """Return the logits of seven tokens after each token in each of ten places, ``[place, last token, next token]``.

    The place matters, so that the same pairs of tokens in another order are another answer with another score: a tie
    would be decided by how a processor rounds.
    """
    return 5 * numbers("table", (10, 7, 7))
