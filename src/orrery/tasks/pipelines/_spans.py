"""The best spans of a row: where an answer begins and where it ends."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.tasks.pipelines._heads import Scores, softmax


@dataclass(frozen=True)
class FoundSpan:
    """A span of tokens, its last one among them, with its probability."""

    start: int
    end: int
    score: float


def ends_of(logits: Scores, allowed: NDArray[np.bool_]) -> tuple[Scores, Scores]:
    """Return the probabilities of the tokens as first and as last ones, over those that are allowed.

    Args:
        logits: ``[L, 2]``.
        allowed: ``[L]``.
    """
    kept = np.where(allowed[:, None], logits, np.float32(-10000.0))
    start, end = softmax(kept[:, 0]), softmax(kept[:, 1])
    return start, end


def best_spans(start: Scores, end: Scores, allowed: NDArray[np.bool_], count: int, longest: int) -> list[FoundSpan]:
    """Return the spans of greatest ``p(start) p(end)`` with at most ``longest`` tokens, best first.

    Of the ``count`` best ones only those stay whose ends are both allowed and that have a probability at all.
    """
    products = np.tril(np.triu(start[:, None] * end[None]), longest - 1)
    order = np.argsort(-products, axis=None, kind="stable")[:count]
    firsts, lasts = np.unravel_index(order, products.shape)
    return [
        FoundSpan(int(first), int(last), float(products[first, last]))
        for first, last in zip(firsts, lasts, strict=True)
        if allowed[first] and allowed[last] and products[first, last] > 0
    ]
