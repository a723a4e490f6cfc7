"""What is found of a fine-tuned model on the examples held back: scores, floors, and where it is wrong."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from orrery.scores.calibration import Bin
from orrery.scores.resampled import Resampled
from orrery.scores.resampling import interval

if TYPE_CHECKING:
    from torch import Tensor

    from orrery.language_model.model import LanguageModel

MANY = 2
"""Examples from which on an interval can be drawn."""


def label_names(lm: "LanguageModel", head: str) -> list[str]:
    """Return the names of a head's labels in the order of their numbers."""
    spec: Any = lm.model.spec.heads[head]
    return list(spec.names) or [f"LABEL_{number}" for number in range(spec.labels)]


@dataclass(frozen=True)
class Mistake:
    """An example that the model got wrong: the text, what is right, what it said, how sure it was, and its pixels."""

    text: str
    right: str
    said: str
    confidence: float | None = None
    picture: "Tensor | None" = None


@dataclass(frozen=True)
class Findings:
    """What is found of a model.

    Attributes:
        scores: the one that counts first.
        floors: what simple methods reach on the same examples, by name, in the same score.
        others: what they reach in the other scores.
        confusion: the labels, and how often each (row) was called each (column).
        bins: of the calibration.
        mistakes: the worst first.
        by_label: rows of a table: a label, precision, recall, F1, how many there are.
        apart: whether their texts were trained on, in a sentence; nothing where that cannot be said.
        examples: how many were held back, in words.
        shown: captions of pictures, each with its words and the picture as bright as they looked at each of its places.
    """

    scores: Sequence[Resampled]
    examples: str
    floors: Sequence[tuple[str, Resampled]] = ()
    others: Sequence[tuple[str, Resampled]] = ()
    confusion: tuple[Sequence[str], Sequence[Sequence[int]]] | None = None
    bins: Sequence[Bin] = ()
    mistakes: Sequence[Mistake] = ()
    by_label: Sequence[tuple[str, float, float, float, int]] = ()
    apart: str = ""
    shown: "Sequence[tuple[str, Sequence[tuple[str, Tensor]]]]" = ()

    @property
    def main(self) -> Resampled:
        """The score that counts."""
        return self.scores[0]

    @property
    def under(self) -> str:
        """What is said where a simple method is better than the model; nothing where none is."""
        up = self.main.higher_is_better
        better = [(name, floor.score) for name, floor in self.floors if (floor.score > self.main.score) == up]
        better = [(name, score) for name, score in better if score != self.main.score]
        if not better:
            return ""
        name, score = (max if up else min)(better, key=lambda each: each[1])
        return f"warning: under its floor: {name} reaches {score:.{self.main.digits}f}, and asks for no training"

    def lines(self) -> list[str]:
        """Return what is said of it: the main score with its interval, the others, the floors."""
        texts = [f"{self.examples}: {self.main}"]
        texts += [f"  {interval(self.main)}"] if self.main.examples >= MANY else []
        texts += [f"  {score}" for score in self.scores[1:]]
        texts += [f"  floor, {name}: {score.score:.{score.digits}f}" for name, score in self.floors]
        texts += [f"  {self.under}"] if self.under else []
        texts += [f"  {self.apart}"] if self.apart else []
        return texts + [f"  {score.name} of {name}: {score.score:.{score.digits}f}" for name, score in self.others]

    def as_json(self) -> str:
        """Return the scores as JSON."""
        content: dict[str, Any] = {
            "examples": self.examples,
            "apart": self.apart,
            "scores": [_told(score) for score in self.scores],
        }
        floors = [{"method": name, **_told(score)} for name, score in (*self.floors, *self.others)]
        return json.dumps({**content, "floors": floors}, indent=1, ensure_ascii=False) + "\n"


def _told(score: Resampled) -> dict[str, Any]:
    """Return a score with its interval as plain values."""
    bounds = interval(score) if score.examples >= MANY else None
    plain: dict[str, Any] = {"name": score.name, "score": score.score, "signature": score.signature}
    return plain if bounds is None else {**plain, "low": bounds.low, "high": bounds.high, "level": bounds.level}


@dataclass(frozen=True)
class Several:
    """The main score of runs with different seeds."""

    name: str
    scores: Sequence[float]
    seeds: Sequence[int] = field(default_factory=tuple)

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return sum(self.scores) / len(self.scores)

    @property
    def spread(self) -> float:
        """The standard deviation of the seeds' scores, with one less than their number below; 0 for a single one."""
        if len(self.scores) < MANY:
            return 0.0
        return (sum((score - self.mean) ** 2 for score in self.scores) / (len(self.scores) - 1)) ** 0.5

    def __str__(self) -> str:
        listed = ", ".join(f"{score:.4f} ({seed})" for score, seed in zip(self.scores, self.seeds, strict=True))
        return f"{self.name} of {len(self.scores)} seeds: mean {self.mean:.4f}, spread {self.spread:.4f}: {listed}"
