"""Scores that can be computed again on examples drawn again: what intervals and paired tests need of a score."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.errors import DataError

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]


class Resampled(ABC):
    """A score of some examples that knows what it would be on others of the same.

    Attributes:
        name: what it is called.
        signature: how it was computed, exactly.
        digits: how many of its digits are shown.
        higher_is_better: which way is better.
    """

    name: str
    signature: str
    digits: int = 4
    higher_is_better: bool = True

    @property
    @abstractmethod
    def examples(self) -> int:
        """How many examples it is computed from."""

    @abstractmethod
    def of_drawn(self, drawn: Rows) -> Floats:
        """Return the score of each row of ``drawn`` [samples, examples], which says which examples it has."""

    @abstractmethod
    def of_mixed(self, other: Any, swapped: NDArray[np.bool_]) -> Floats:
        """Return the score of each row of ``swapped`` [samples, examples]: where it is true, the other's example."""

    @property
    def score(self) -> float:
        """The score of all examples, each once."""
        return float(self.of_drawn(np.arange(self.examples)[None])[0])

    def __str__(self) -> str:
        return f"{self.name} {self.score:.{self.digits}f} ({self.signature})"


@dataclass(frozen=True)
class AdditiveScore(Resampled):
    """A score that is a function of sums over the examples: ``of(sum_n sums[n])``, with ``sums`` [examples, numbers].

    New samples cost one product of matrices, however the sums were obtained: no text is read twice. ``columns`` says
    what the sums count where that depends on the examples: labels, say. Two systems are mixed only where they agree.
    """

    name: str
    signature: str
    sums: Floats
    of: Callable[[Floats], float]
    digits: int = 4
    higher_is_better: bool = True
    columns: tuple[Hashable, ...] = ()

    @property
    def examples(self) -> int:
        """How many examples it is computed from."""
        return len(self.sums)

    @property
    def score(self) -> float:
        """The score of all examples, each once."""
        return float(self.of(self.sums.sum(0)))

    def of_drawn(self, drawn: Rows) -> Floats:
        """Return the score of each sample, from how often it has each example."""
        samples, size = len(drawn), self.examples
        places = (drawn + size * np.arange(samples)[:, None]).ravel()
        counts = np.bincount(places, minlength=samples * size).reshape(samples, size)
        return self._of_each(counts.astype(np.float64) @ self.sums)

    def of_mixed(self, other: "AdditiveScore", swapped: NDArray[np.bool_]) -> Floats:
        """Return the score of each mixture.

        Raises:
            DataError: the sums of the two count different things.
        """
        if self.columns != other.columns or self.sums.shape != other.sums.shape:
            message = f"{self.name}: the sums of the two systems do not count the same"
            raise DataError(message, "give both the same `labels`, `types` or `centre`")
        return self._of_each(self.sums.sum(0) + swapped.astype(np.float64) @ (other.sums - self.sums))

    def _of_each(self, totals: Floats) -> Floats:
        return np.array([self.of(total) for total in totals], np.float64)


@dataclass(frozen=True)
class Joint(Resampled):
    """A score of all examples at once that is no function of sums, such as a rank correlation."""

    name: str
    signature: str
    each: Sequence[Any]
    of: Callable[[list[Any]], float]
    digits: int = 4
    higher_is_better: bool = True

    @property
    def examples(self) -> int:
        """How many examples it is computed from."""
        return len(self.each)

    def of_drawn(self, drawn: Rows) -> Floats:
        """Return the score of each sample, computed from its examples."""
        return np.array([self.of([self.each[place] for place in row]) for row in drawn], np.float64)

    def of_mixed(self, other: "Joint", swapped: NDArray[np.bool_]) -> Floats:
        """Return the score of each mixture, computed from its examples."""
        both = (self.each, other.each)
        return np.array([self.of([both[bool(s)][n] for n, s in enumerate(row)]) for row in swapped], np.float64)


def mean_of(name: str, signature: str, values: Sequence[float] | Floats, **how: Any) -> AdditiveScore:
    """Return the score that is the mean of one number an example; ``how`` as in `AdditiveScore`."""
    numbers = np.asarray(values, np.float64)
    return AdditiveScore(name, signature, np.stack([numbers, np.ones_like(numbers)], 1), share, **how)


def share(sums: Floats) -> float:
    """Return the first sum over the second; 0 where the second is 0."""
    return float(sums[0] / sums[1]) if sums[1] else 0.0


def same_length(ours: Sized, theirs: Sized, what: str = "examples") -> None:
    """Raise `DataError` where there is nothing to score, or where one side has more than the other."""
    if not len(ours) or len(ours) != len(theirs):
        message = f"{len(ours):,} predicted {what}, {len(theirs):,} right ones"
        raise DataError(message, "give at least one, and one prediction for each")
