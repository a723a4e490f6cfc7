"""The flags that say how far scores can be trusted, which several tasks share, and the lines that they add."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from orrery.cli.numbers import COUNT, SEED

if TYPE_CHECKING:
    from orrery.scores.resampled import Resampled

_CONFIDENCE = "Print the 95 % interval of each score, from examples drawn again."
_SAMPLES = "How often examples are drawn again, or outputs swapped."


@Parameter(name="*")
@dataclass(frozen=True)
class Trust:
    """How far scores can be trusted."""

    confidence: Annotated[bool, Parameter(negative="", help=_CONFIDENCE)] = False
    samples: Annotated[int, COUNT, Parameter(help=_SAMPLES)] = 1000
    seed: Annotated[int, SEED, Parameter(help="What the draws begin from.")] = 1337


PLAIN = Trust()
"""What is used unless told otherwise."""


def print_scores(scores: "Sequence[Resampled]", others: "Sequence[Resampled] | None", trust: Trust) -> None:
    """Print each score; below it, where asked for, its interval and how it differs from the other system's.

    Raises:
        DataError: there is only one example, of which nothing can be drawn again.
    """
    from orrery.scores.resampling import interval, paired_bootstrap, paired_randomisation

    how = (trust.samples, trust.seed)
    for place, score in enumerate(scores):
        print(score)
        if trust.confidence:
            print(f"  {interval(score, samples=trust.samples, seed=trust.seed)}")
        if others is not None:
            print(f"  the other system has {others[place].score:.{score.digits}f}")
            for test in (paired_bootstrap, paired_randomisation):
                print(f"  {test(score, others[place], *how)}")
