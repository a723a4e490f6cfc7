"""What happens in a run, in the order in which its observers are told."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class RunBegan:
    """A run is ready for its next step; it is told again each time that it is resumed.

    Attributes:
        folder: of the run. A run that replaces another moves once, behind its first checkpoint.
        name: of the recipe.
        step: how many steps are done.
        first: the first step whose record is still to come. What an observer has of this one and later ones, from
            before a kill, comes again.
        recipe: every key with its value, as JSON values.
    """

    folder: Path
    name: str
    step: int
    first: int
    recipe: Mapping[str, Any]


@dataclass(frozen=True)
class Said:
    """The run says a line, which stands in ``log.txt`` too."""

    folder: Path
    text: str


@dataclass(frozen=True)
class Evaluated:
    """The model was measured on what is held back, and wrote its sample; the record of the step follows.

    Attributes:
        folder: of the run.
        step: how many steps are done.
        found: the values, by their names in the metrics.
        sample: what the model wrote, where the recipe has a prompt.
    """

    folder: Path
    step: int
    found: Mapping[str, float]
    sample: str | None = None


@dataclass(frozen=True)
class StepLearned:
    """A step is done, and what is due at it measured.

    Attributes:
        folder: of the run.
        step: how many steps are done.
        steps: how many there will be.
        record: the line of metrics, where one is due; a number in it may not be finite.
    """

    folder: Path
    step: int
    steps: int
    record: Mapping[str, Any] | None = None

    @property
    def numbers(self) -> dict[str, int | float]:
        """The finite numbers of the record, by name."""
        given = self.record or {}
        return {name: value for name, value in given.items() if value is not None and math.isfinite(value)}


@dataclass(frozen=True)
class CheckpointSaved:
    """A checkpoint is on the disk.

    Attributes:
        folder: of the run.
        step: of the checkpoint.
        path: its folder.
        best: whether it is the best so far, by the metric that decides.
    """

    folder: Path
    step: int
    path: Path
    best: bool


@dataclass(frozen=True)
class RunEnded:
    """The run ends: its steps are done, a signal stopped it, or it failed.

    Attributes:
        folder: of the run.
        step: how many steps are done.
        best: the best value of the metric that decides.
        signal: the number of the signal that stopped it.
        error: what it failed by.
    """

    folder: Path
    step: int
    best: float | None = None
    signal: int | None = None
    error: str | None = None


Event = RunBegan | Said | Evaluated | StepLearned | CheckpointSaved | RunEnded
