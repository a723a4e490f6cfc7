"""What a ladder has found so far, as plain values: table, page, figures and the JSON file are made of these alone."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class LadderRun:
    """One training and what it reached.

    Attributes:
        parameters: of the blocks; it says of which size the training is.
        seed: of the training.
        loss: nats a token of the text held back.
        bits_per_byte: the same in bits a byte.
        seconds: of training, evaluations not counted.
    """

    parameters: int
    seed: int
    loss: float
    bits_per_byte: float
    seconds: float


@dataclass
class LadderFindings:
    """A ladder: its settings, its text, its sizes with the seconds that each was planned to take, and its trainings.

    ``signal`` is what stopped it early.
    """

    settings: Mapping[str, Any]
    corpus: Mapping[str, Any]
    sizes: Sequence[Mapping[str, Any]]
    runs: list[LadderRun] = field(default_factory=list)
    signal: int | None = None

    @property
    def largest(self) -> Mapping[str, Any]:
        """The size whose loss is predicted."""
        return self.sizes[-1]

    @property
    def fitted(self) -> list[LadderRun]:
        """The trainings that the law is fitted to: all but those of the largest size."""
        return [run for run in self.runs if run.parameters != self.largest["parameters"]]

    @property
    def measured(self) -> LadderRun | None:
        """The training of the largest size, once it is done."""
        return next((run for run in self.runs if run.parameters == self.largest["parameters"]), None)

    @property
    def fittable(self) -> bool:
        """Whether every training of the smaller sizes is done."""
        return len(self.fitted) == (len(self.sizes) - 1) * len(self.settings["ladder"]["seeds"])

    def of(self, parameters: int) -> list[LadderRun]:
        """Return the trainings of a size."""
        return [run for run in self.runs if run.parameters == parameters]

    def done(self, parameters: int, seed: int) -> bool:
        """Say whether a training is done."""
        return any((run.parameters, run.seed) == (parameters, seed) for run in self.runs)

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {name: value for name, value in asdict(self).items() if name != "signal"}


def findings_from(values: Mapping[str, Any]) -> LadderFindings:
    """Return the findings of a JSON file."""
    runs = [LadderRun(**run) for run in values["runs"]]
    return LadderFindings(
        dict(values["settings"]), dict(values["corpus"]), [dict(size) for size in values["sizes"]], runs
    )
