r"""How far a score can be trusted: bootstrap intervals, and paired tests of two systems on the same examples.

Each takes a score of `orrery.scores.resampled`: samples of a score made of sums cost one product of matrices.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from orrery.errors import DataError, UsageError
from orrery.scores.resampled import Floats, Resampled
from orrery.scores.signature import signature

SEED = 1337
AT_ONCE = 1 << 22
"""Draws held in memory at once."""


@dataclass(frozen=True)
class Interval:
    """The interval of a score that holds ``level`` of its values on examples drawn again."""

    low: float
    high: float
    level: float
    signature: str
    digits: int = 4

    def __str__(self) -> str:
        numbers = f"{self.low:.{self.digits}f} to {self.high:.{self.digits}f}"
        return f"{100 * self.level:g} % interval {numbers} ({self.signature})"


@dataclass(frozen=True)
class Compared:
    """The difference of two scores, first less second, and how probable a larger one were if the systems were equal.

    ``wins`` is the share of samples in which the first system is the better one (Koehn 2004); NaN where no samples of
    examples are drawn.
    """

    name: str
    difference: float
    p: float
    wins: float
    signature: str
    digits: int = 4

    def __str__(self) -> str:
        wins = "" if np.isnan(self.wins) else f", better in {100 * self.wins:.1f} % of samples"
        return f"{self.name} difference {self.difference:+.{self.digits}f}, p = {self.p:.4f}{wins} ({self.signature})"


def interval(score: Resampled, samples: int = 1000, level: float = 0.95, seed: int = SEED) -> Interval:
    """Return the percentile interval of the bootstrap (Efron 1979).

    ``samples`` times as many examples as there are, drawn with replacement; the interval leaves out (1 - level) / 2
    of their scores on either side. It is that of the examples alone: how far another training would move the score it
    cannot know.

    Raises:
        DataError: fewer than two examples.
        UsageError: fewer than two samples, or a level outside (0, 1).
    """
    if not 0 < level < 1:
        raise UsageError(f"an interval of level {level}", "give a share between 0 and 1, such as 0.95")
    values = np.concatenate([score.of_drawn(rows) for rows in _drawn(score.examples, samples, seed)])
    defined = values[~np.isnan(values)]  # a correlation of a sample that is constant has no value
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2]) if len(defined) else (np.nan, np.nan)
    facts = signature(bootstrap="percentile", samples=samples, undefined=len(values) - len(defined), seed=seed)
    return Interval(float(low), float(high), level, facts, score.digits)


def paired_bootstrap(ours: Resampled, theirs: Resampled, samples: int = 1000, seed: int = SEED) -> Compared:
    r"""Test the difference ``d`` of two systems by drawing examples again, the same ones for both.

    :math:`p = (1 + \#\{|d_s| - \overline{|d|} > |d|\}) / (1 + \text{samples})`, the rule of Moses and of sacrebleu's
    ``--paired-bs``, with :math:`\overline{|d|}` the mean over the samples.

    Paper: Koehn 2004; the shift to the mean Riezler and Maxwell 2005.

    Raises:
        DataError: fewer than two examples, or the systems have different numbers of them.
    """
    _check(ours, theirs)
    both = [(ours.of_drawn(rows), theirs.of_drawn(rows)) for rows in _drawn(ours.examples, samples, seed)]
    differences = np.concatenate([one - other for one, other in both])
    difference, sizes = ours.score - theirs.score, abs(differences)
    p = _p_value(sizes - sizes.mean(), abs(difference))
    wins = float((differences > 0 if ours.higher_is_better else differences < 0).mean())
    return Compared(
        ours.name, difference, p, wins, signature(test="bootstrap", samples=samples, seed=seed), ours.digits
    )


def paired_randomisation(ours: Resampled, theirs: Resampled, trials: int = 10_000, seed: int = SEED) -> Compared:
    r"""Test the difference ``d`` of two systems by swapping their outputs, each example with probability one half.

    :math:`p = (1 + \#\{|d_s| > |d|\}) / (1 + \text{trials})`: two-sided, as sacrebleu's ``--paired-ar``.

    Paper: Riezler and Maxwell 2005; Noreen 1989. Errors as in `paired_bootstrap`.
    """
    _check(ours, theirs)
    rng, difference = np.random.default_rng(seed), ours.score - theirs.score
    sizes = []
    for count in _portions(ours.examples, trials):
        swapped = rng.integers(2, size=(count, ours.examples)).astype(bool)
        sizes.append(abs(ours.of_mixed(theirs, swapped) - theirs.of_mixed(ours, swapped)))
    # Sums in another order differ in their last digits, and a trial that swaps all or nothing is no larger difference.
    p = _p_value(np.concatenate(sizes), abs(difference) * (1 + 1e-12))
    facts = signature(test="randomisation", trials=trials, seed=seed)
    return Compared(ours.name, difference, p, float("nan"), facts, ours.digits)


def _p_value(sizes: Floats, difference: float) -> float:
    return (1 + int((sizes > difference).sum())) / (1 + len(sizes))


def refuse_one(examples: int) -> None:
    """Raise `DataError` where there is one example only, of which nothing can be drawn again."""
    if examples < 2:
        raise DataError(f"{examples} example cannot be drawn again", "give two or more")


def _drawn(examples: int, samples: int, seed: int) -> Iterator[np.ndarray]:
    refuse_one(examples)
    rng = np.random.default_rng(seed)
    for count in _portions(examples, samples):
        yield rng.integers(examples, size=(count, examples))


def _portions(examples: int, samples: int) -> Iterator[int]:
    if samples < 2:
        raise UsageError(f"{samples} samples", "give two or more; 1,000 are usual")
    step = max(1, AT_ONCE // examples)
    for start in range(0, samples, step):
        yield min(step, samples - start)


def _check(ours: Resampled, theirs: Resampled) -> None:
    if ours.examples != theirs.examples:
        message = f"{ours.examples:,} examples of one system, {theirs.examples:,} of the other"
        raise DataError(message, "a paired test needs both systems' outputs for the same examples")
