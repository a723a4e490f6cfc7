"""How a model's attention runs through its sources: forward word by word, or in jumps."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from orrery.data.records import Pair
from orrery.errors import DataError
from orrery.language_model.model import LanguageModel

LOCAL = 3
"""A jump over at most this many words is local."""

TOLD = 100
"""Progress is told each time that so many sentences are done."""


@dataclass(frozen=True)
class Walk:
    """How the looked-at places follow each other, from a target word to the next.

    Attributes:
        steps: from a target word to the next.
        stays: steps that look at the same source word again.
        forward: steps to a word further right.
        local: steps to a word further left, by at most three.
        far: steps further left than that.
        agreement: Kendall's tau-b of the order of target words and places, mean over the sentences.
    """

    steps: int
    stays: int
    forward: int
    local: int
    far: int
    agreement: float

    def __str__(self) -> str:
        shares = ", ".join(
            f"{name} {count / max(1, self.steps):.1%}"
            for name, count in (
                ("forward", self.forward),
                ("stays", self.stays),
                (f"back by up to {LOCAL} words", self.local),
                ("further back", self.far),
            )
        )
        return f"from word to word ({self.steps:,} steps): {shares}; Kendall's tau-b {self.agreement:.3f}"


def evaluate_alignment(lm: LanguageModel, pairs: Sequence[Pair], *, done: Callable[[int], None] | None = None) -> Walk:
    """Align each pair, its translation given, and return how the places follow each other.

    Raises:
        DataError: there are no pairs.
        UsageError: as in ``LanguageModel.align``.
    """
    if not pairs:
        raise DataError("there are 0 pairs to align", "give two files of as many lines")
    walks = []
    for number, pair in enumerate(pairs):
        if pair.source.strip() and pair.target.strip():
            walks.append(lm.align(pair.source, pair.target).places)
        if done is not None and (number + 1) % TOLD == 0:
            done(number + 1)
    return walk(walks)


def walk(sentences: Iterable[Sequence[int]]) -> Walk:
    """Return how places follow each other in some sentences."""
    steps, taus = [], []
    for places in sentences:
        steps += [after - before for before, after in pairwise(places)]
        taus += [tau for tau in (kendall(places),) if tau is not None]
    return Walk(
        steps=len(steps),
        stays=sum(step == 0 for step in steps),
        forward=sum(step > 0 for step in steps),
        local=sum(-LOCAL <= step < 0 for step in steps),
        far=sum(step < -LOCAL for step in steps),
        agreement=sum(taus) / len(taus) if taus else float("nan"),
    )


def kendall(places: Sequence[int]) -> float | None:
    """Return ``(pairs in order - pairs out of order) / sqrt(pairs * pairs without ties)``, Kendall's tau-b.

    The order of the target words has no ties; where all places are the same there is no order to speak of.
    """
    signs = [(later > earlier) - (later < earlier) for i, earlier in enumerate(places) for later in places[i + 1 :]]
    untied = sum(map(abs, signs))
    return sum(signs) / (len(signs) * untied) ** 0.5 if untied else None
