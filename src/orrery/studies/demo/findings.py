"""What the demo found out, as plain values: the page, the JSON file and the terminal are made of these alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from orrery.inspection.checks import Check

Role = Literal["model", "check", "aim"]
"""The model itself; a floor that it must be below; a number to aim at."""


@dataclass(frozen=True)
class DemoCorpus:
    """The text: where from, its identity, and how much of it trains and is held back."""

    source: str
    fingerprint: str
    train_documents: int
    held_back_documents: int
    train_bytes: int
    held_back_bytes: int
    train_tokens: int


@dataclass(frozen=True)
class DemoRun:
    """The model and how it was trained; ``seconds`` are by stage, ``records`` the lines of metrics.jsonl."""

    folder: str
    family: str
    config: Mapping[str, Any]
    parameters: int
    vocabulary: int
    steps: int
    tokens: int
    seed: int
    precision: str
    seconds: Mapping[str, float]
    records: Sequence[Mapping[str, Any]]

    @property
    def tokens_per_second(self) -> float:
        """The median speed of training between two lines of metrics; 0 without any."""
        speeds = sorted(record["tokens_per_second"] for record in self.records if "tokens_per_second" in record)
        return float(speeds[len(speeds) // 2]) if speeds else 0.0


@dataclass(frozen=True)
class Measure:
    """Bits per byte of the held-back text under one model or compressor."""

    name: str
    bits_per_byte: float
    role: Role


@dataclass(frozen=True)
class Sample:
    """A text that the model wrote; ``method`` says how its tokens were chosen."""

    prompt: str
    text: str
    method: str
    tokens: int
    tokens_per_second: float


@dataclass(frozen=True)
class DemoHead:
    """One attention head: its place, what its numbers say in words, and its pattern, queries down."""

    name: str
    note: str
    pattern: Sequence[Sequence[float]]


@dataclass(frozen=True)
class Sight:
    """The inside of one pass over a held-back sentence: every head, the two to look at first, the checks."""

    tokens: Sequence[str]
    heads: Sequence[DemoHead]
    chosen: Sequence[DemoHead]
    checks: Sequence[Check]


@dataclass(frozen=True)
class DemoFindings:
    """All that the demo shows."""

    corpus: DemoCorpus
    run: DemoRun
    measures: Sequence[Measure]
    method: str
    samples: Sequence[Sample]
    sight: Sight

    @property
    def model(self) -> Measure:
        """The measure of the model itself."""
        return next(measure for measure in self.measures if measure.role == "model")

    @property
    def checks(self) -> list[Check]:
        """What must hold: the model is below each floor, and looking was honest."""
        floors = [measure for measure in self.measures if measure.role == "check"]
        # Strictly below: the nearest float under the floor is the bound.
        below = [
            Check(f"below {floor.name}", self.model.bits_per_byte, math.nextafter(floor.bits_per_byte, -math.inf))
            for floor in floors
        ]
        return [*below, *self.sight.checks]

    @property
    def failed(self) -> list[Check]:
        """The checks that do not hold."""
        return [check for check in self.checks if not check.passed]

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values, the checks with their verdicts."""
        checks = [{**asdict(check), "passed": check.passed} for check in self.checks]
        return {**asdict(self), "checks": checks, "passed": not self.failed}
