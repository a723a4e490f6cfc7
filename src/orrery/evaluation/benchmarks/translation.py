"""How well a model translates a test set: BLEU and chrF, as a whole and by the length of the sources."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from orrery.data.records import Pair
from orrery.errors import DataError
from orrery.language_model.model import LanguageModel
from orrery.scores.resampled import AdditiveScore
from orrery.scores.translation import bleu, chrf

BORDERS = (10, 15, 20, 30)
"""Words of a source: the upper ends of the buckets, the last of which is open."""


@dataclass(frozen=True)
class Bucket:
    """The pairs whose sources have ``fewest`` to ``most`` words (None: any number above), and their BLEU."""

    fewest: int
    most: int | None
    pairs: int
    bleu: AdditiveScore

    def __str__(self) -> str:
        words = f"{self.fewest}-{self.most}" if self.most is not None else f"{self.fewest} and more"
        return f"{words} words, {self.pairs:,} pairs: BLEU {self.bleu.score:.2f}"


@dataclass(frozen=True)
class Translated:
    """What a model made of a test set, and how good that is."""

    hypotheses: list[str]
    bleu: AdditiveScore
    chrf: AdditiveScore
    buckets: list[Bucket]
    seconds: float

    @property
    def sentences_per_second(self) -> float:
        """How many sentences were translated a second."""
        return len(self.hypotheses) / max(self.seconds, 1e-9)


def evaluate_translation(
    lm: LanguageModel,
    pairs: Sequence[Pair],
    *,
    borders: Sequence[int] = BORDERS,
    done: Callable[[int], None] | None = None,
    **search: Any,
) -> Translated:
    """Translate the sources and score them against the targets.

    Args:
        lm: an encoder-decoder.
        pairs: the test set.
        borders: the upper ends of the buckets of lengths, in words.
        done: told after each batch how many sentences are translated.
        search: settings of ``LanguageModel.translate``.

    Raises:
        DataError: there are no pairs.
        MachineError: sacrebleu is not installed.
        UsageError: as in ``LanguageModel.translate``.
    """
    if not pairs:
        raise DataError("there are 0 pairs to translate", "give two files of as many lines")
    bleu([""], [""])  # sacrebleu is asked for before the work, not after it
    began = perf_counter()
    hypotheses = lm.translate([pair.source for pair in pairs], done=done, **search)
    seconds = perf_counter() - began
    targets = [pair.target for pair in pairs]
    buckets = by_length([pair.source for pair in pairs], hypotheses, targets, borders)
    return Translated(hypotheses, bleu(hypotheses, targets), chrf(hypotheses, targets), buckets, seconds)


def by_length(
    sources: Sequence[str], hypotheses: Sequence[str], targets: Sequence[str], borders: Sequence[int] = BORDERS
) -> list[Bucket]:
    """Return corpus BLEU of the pairs in each bucket of source lengths, counted in words; empty ones are left out."""
    buckets = []
    fewest = 1
    for most in (*borders, None):
        rows = [
            number
            for number, source in enumerate(sources)
            if fewest <= max(1, len(source.split())) and (most is None or len(source.split()) <= most)
        ]
        if rows:
            score = bleu([hypotheses[row] for row in rows], [targets[row] for row in rows])
            buckets.append(Bucket(fewest, most, len(rows), score))
        fewest = (most or 0) + 1
    return buckets
