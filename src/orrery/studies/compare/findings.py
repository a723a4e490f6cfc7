"""What a comparison found out, as plain values: table, page, figures and the JSON file are made of these alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from orrery.reports.frames import frame

OWN, SWEPT, HAND_SET, BESIDE = "its recipe's", "swept", "hand-set", "hand-set beside the swept"
"""Where a learning rate comes from; the last is a second training of a model whose rate is swept."""


@dataclass(frozen=True)
class Point:
    """One evaluation on the way: how long and how many tokens the model had learned, and its bits per byte."""

    step: int
    tokens: int
    seconds: float
    bits_per_byte: float


@dataclass(frozen=True)
class ComparisonEntry:
    """One trained or counted model: what it is, what it was given, and what it reached on the text held back.

    ``parameters`` of a table of counts are its different n-grams; ``bytes`` is the memory of weights or counts. What
    is counted has no budget, no seed and no rate. ``budget`` is in the unit of the comparison, ``recipe`` says where
    the learning rate comes from, and ``warmup`` is in steps.
    """

    name: str
    description: str
    parameters: int
    bytes: int
    tokens: int
    seconds: float
    bits_per_byte: float
    perplexity: float
    steps: int | None = None
    curve: Sequence[Point] = ()
    budget: int | float | None = None
    seed: int | None = None
    recipe: str | None = None
    rate: float | None = None
    warmup: int | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells the trainings of a comparison apart."""
        return self.name, self.budget, self.seed, self.recipe == BESIDE


@dataclass(frozen=True)
class Trial:
    """A short training of a sweep and the loss that it is judged by, in bits per byte of the text kept for choosing.

    A training that came apart has no loss.
    """

    rate: float
    warmup: float
    steps: int
    tokens: int
    seconds: float
    bits_per_byte: float | None

    @property
    def loss(self) -> float:
        """What the trial is judged by: more than any number where it came apart."""
        return math.inf if self.bits_per_byte is None else self.bits_per_byte


@dataclass
class SweepResult:
    """The trials of a model in their order; the first is at the rate set by hand."""

    trials: list[Trial] = field(default_factory=list)

    @property
    def best(self) -> Trial:
        """The trial with the least loss, the earlier of two alike."""
        return min(self.trials, key=lambda trial: trial.loss)

    def as_json(self) -> dict[str, Any]:
        """Return the trials and the choice."""
        return {
            "trials": [asdict(trial) for trial in self.trials],
            "chosen": {"rate": self.best.rate, "warmup": self.best.warmup} if self.trials else None,
        }


@dataclass
class Comparison:
    """The text and the budgets that all had, and what is done so far; ``signal`` is what stopped it early.

    ``sweeps`` and ``speeds`` (tokens of training a second, which budgets of time are turned into steps by) are by the
    model's name; ``probes`` by the probe's name, then the model's.
    """

    settings: Mapping[str, Any]
    corpus: Mapping[str, Any]
    entries: list[ComparisonEntry] = field(default_factory=list)
    sweeps: dict[str, SweepResult] = field(default_factory=dict)
    speeds: dict[str, float] = field(default_factory=dict)
    probes: dict[str, dict[str, Any]] = field(default_factory=dict)
    signal: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            "settings": self.settings,
            "corpus": self.corpus,
            "models": [asdict(entry) for entry in self.entries],
            "sweeps": {name: sweep.as_json() for name, sweep in self.sweeps.items()},
            "speeds": self.speeds,
            "probes": self.probes,
        }

    def to_pandas(self) -> Any:
        """Return the trained and counted models as a ``pandas.DataFrame``, a row each; their curves are left out.

        Raises:
            MachineError: pandas is not installed.
        """
        rows = [asdict(entry) for entry in self.entries]
        return frame([{name: value for name, value in row.items() if name != "curve"} for row in rows])

    def done(self, *key: Any) -> bool:
        """Say whether a training is done: its name, budget, seed, and whether it is beside a swept one."""
        return any(entry.key == key for entry in self.entries)


def comparison_from(values: Mapping[str, Any]) -> Comparison:
    """Return the comparison of a JSON file."""
    return Comparison(
        values["settings"],
        values["corpus"],
        [entry_from(entry) for entry in values["models"]],
        {name: SweepResult([Trial(**trial) for trial in sweep["trials"]]) for name, sweep in values["sweeps"].items()},
        dict(values["speeds"]),
        {name: dict(curves_of_models) for name, curves_of_models in values["probes"].items()},
    )


def entry_from(values: Mapping[str, Any]) -> ComparisonEntry:
    """Return a model of the JSON file."""
    return ComparisonEntry(**{**values, "curve": tuple(Point(**point) for point in values["curve"])})


def points(records: Sequence[Mapping[str, Any]]) -> tuple[Point, ...]:
    """Return the evaluations of a run from its lines of metrics.

    The speed in a line is that of training alone, so the seconds are too: evaluations cost none. A line that was due
    when the run was stopped has no speed; its tokens are taken to have come as fast as those before or after them.
    """
    measured, seconds, tokens = [], 0.0, 0
    speed = next((record["tokens_per_second"] for record in records if record["tokens_per_second"] > 0), math.inf)
    for record in records:
        speed = record["tokens_per_second"] or speed
        seconds += (record["tokens"] - tokens) / speed
        tokens = record["tokens"]
        if record.get("val/bpb") is not None:
            measured.append(Point(record["step"], tokens, round(seconds, 3), record["val/bpb"]))
    return tuple(measured)
