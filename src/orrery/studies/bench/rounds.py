"""Interleaved rounds: everybody writes in turn, so that a slow minute of the machine is everybody's."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from time import perf_counter

from orrery.studies.bench.subjects import PeerProgram, Rows


@dataclass(frozen=True)
class Case:
    """What is asked for: rows at once, tokens of each prompt, and tokens to write; one token measures reading alone."""

    rows: int
    prompt: int
    new: int

    @property
    def name(self) -> str:
        """Return it in words."""
        words = f"reading {self.prompt}" if self.new == 1 else f"{self.prompt} + {self.new} tokens"
        return words if self.rows == 1 else f"{words}, {self.rows} rows"

    def prompts(self, vocabulary: int) -> list[list[int]]:
        """Return random prompts, the same whenever they are asked for."""
        draw = Random(self.rows * 1000 + self.prompt)
        return [[draw.randrange(vocabulary) for _ in range(self.prompt)] for _ in range(self.rows)]


@dataclass(frozen=True)
class Series:
    """One subject's rounds in one case: seconds to the first token, and to the last."""

    subject: str
    case: Case
    first: list[float]
    whole: list[float]
    tokens: list[list[int]]

    @cached_property
    def rates(self) -> Mapping[str, list[float]]:
        """Return, round by round: seconds to the first token, tokens a second of each kind."""
        rows, read, new = self.case.rows, self.case.prompt, self.case.new
        by_name = {"first": self.first, "prefill": [rows * read / seconds for seconds in self.first]}
        if new > 1:
            by_name["whole"] = [rows * new / seconds for seconds in self.whole]
            # On a busy machine one token may take as long as all of them: a tenth of the time was still for the rest.
            pairs = zip(self.first, self.whole, strict=True)
            between = [max(whole - first, whole / 10) for first, whole in pairs]
            by_name["decode"] = [rows * (new - 1) / seconds for seconds in between]
        return by_name

    def median(self, measure: str) -> float:
        """Return the median of a measure."""
        return statistics.median(self.rates[measure])

    def faster_than(self, other: "Series", measure: str) -> list[float]:
        """Return how many times faster this one is than another, in each round."""
        pairs = zip(self.rates[measure], other.rates[measure], strict=True)
        return [theirs / ours if measure == "first" else ours / theirs for ours, theirs in pairs]


def measure(
    subjects: Sequence[PeerProgram],
    case: Case,
    vocabulary: int,
    rounds: int,
    say: Callable[[str], None] = lambda line: None,
    between: Callable[[], None] = lambda: None,
) -> list[Series]:
    """Let every subject write the same in every round, after one that is not counted.

    Args:
        subjects: who writes; in every second round they come in the opposite order.
        case: what they write.
        vocabulary: the ids of the prompts lie below it.
        rounds: how many are counted.
        say: told what is going on.
        between: called before each round, to measure the machine in the same minutes.
    """
    prompts = case.prompts(vocabulary)
    series = [Series(subject.name, case, [], [], []) for subject in subjects]
    for subject, taken in zip(subjects, series, strict=True):
        say(f"{case.name}: {subject.name} warms up")
        taken.tokens[:] = subject.write(prompts, case.new)
    for number in range(rounds):
        between()
        order = list(zip(subjects, series, strict=True))
        for subject, taken in reversed(order) if number % 2 else order:
            say(f"{case.name}: round {number + 1} of {rounds}, {subject.name}")
            taken.first.append(_seconds(subject, prompts, 1))
            taken.whole.append(taken.first[-1] if case.new == 1 else _seconds(subject, prompts, case.new))
    return series


def _seconds(subject: PeerProgram, prompts: Rows, new: int) -> float:
    start = perf_counter()
    subject.write(prompts, new)
    return perf_counter() - start


def agreement(ours: Sequence[Sequence[int]], theirs: Sequence[Sequence[int]]) -> tuple[int, int]:
    """Return how many tokens are equal up to each row's first difference, and how many there are."""
    equal = 0
    for mine, other in zip(ours, theirs, strict=True):
        pairs = zip(mine, other, strict=True)
        equal += next((place for place, (a, b) in enumerate(pairs) if a != b), len(mine))
    return equal, sum(map(len, ours))
