"""What a comparison found out, as plain values: table, page, figures and the JSON file are made of these alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Point:
    """One evaluation on the way: how long and how many tokens the model had learned, and its bits per byte."""

    step: int
    tokens: int
    seconds: float
    bits_per_byte: float


@dataclass(frozen=True)
class Entry:
    """One model: what it is, what it was given, and what it reached on the text held back.

    ``parameters`` of a table of counts are its different n-grams; ``bytes`` is the memory of weights or counts.
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

    @property
    def row(self) -> tuple[str, ...]:
        """The line of the table."""
        return (
            self.name,
            f"{self.parameters:,}" + (" n-grams" if self.steps is None else ""),
            f"{self.bytes / 1e6:.1f}",
            f"{self.tokens:,}",
            f"{self.seconds:.1f}",
            f"{self.bits_per_byte:.3f}",
            f"{self.perplexity:.2f}",
        )


COLUMNS = ("model", "parameters", "MB", "tokens seen", "seconds", "bits per byte", "perplexity")


@dataclass
class Comparison:
    """The text and the budget that all had, and the models done so far; ``signal`` is what stopped it early."""

    settings: Mapping[str, Any]
    corpus: Mapping[str, Any]
    entries: list[Entry] = field(default_factory=list)
    signal: int | None = None

    @property
    def ranked(self) -> list[Entry]:
        """The models, the best first."""
        return sorted(self.entries, key=lambda entry: entry.bits_per_byte)

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {"settings": self.settings, "corpus": self.corpus, "models": [asdict(entry) for entry in self.entries]}


def entry_from(values: Mapping[str, Any]) -> Entry:
    """Return a model of the JSON file."""
    return Entry(**{**values, "curve": tuple(Point(**point) for point in values["curve"])})


def points(records: Sequence[Mapping[str, Any]]) -> tuple[Point, ...]:
    """Return the evaluations of a run from its lines of metrics.

    The speed in a line is that of training alone, so the seconds are too: evaluations cost none. A line that was due
    when the run was stopped has no speed; its tokens are taken to have come as fast as those before or after them.
    """
    found, seconds, tokens = [], 0.0, 0
    speed = next((record["tokens_per_second"] for record in records if record["tokens_per_second"] > 0), math.inf)
    for record in records:
        speed = record["tokens_per_second"] or speed
        seconds += (record["tokens"] - tokens) / speed
        tokens = record["tokens"]
        if record.get("val/bpb") is not None:
            found.append(Point(record["step"], tokens, round(seconds, 3), record["val/bpb"]))
    return tuple(found)
