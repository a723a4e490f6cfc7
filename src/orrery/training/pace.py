"""How far a run is, how long the rest takes, and its newest measures, each in one short line."""

from collections.abc import Mapping
from time import monotonic
from typing import Any

from orrery.reports.heartbeat import duration

UNITS = {
    "train/loss": "loss {:.4f}",
    "loss": "after it {:.4f}",
    "val/loss": "val {:.4f}",
    "val/bpb": "bpb {:.4f}",
    "lr": "rate {:.2e}",
    "tokens_per_second": "{:,.0f} tokens/s",
    "memory": "{:.2f} GB",
    "mfu": "MFU {:.0%}",
}
SHOWN = ("val/loss", "val/bpb", "val/perplexity")
"""Of what is measured on examples held back: what has a form above, and what says the same as the loss."""


class Pace:
    """How far a run is, and how long the rest takes at the pace so far."""

    def __init__(self) -> None:
        self._begun = self._first = monotonic()
        self._from = self._step = self._steps = 0

    def reached(self, step: int, steps: int) -> None:
        """Note a step; the first one that is told is where the pace is measured from, as it takes longest."""
        if not self._steps:
            self._first, self._from = monotonic(), step
        self._step, self._steps = step, steps

    def left(self) -> str:
        """Return the time left in words behind two blanks; nothing where there is none or no pace yet."""
        done = self._step - self._from
        if done < 1 or self._step >= self._steps:
            return ""
        seconds = (monotonic() - self._first) / done * (self._steps - self._step)
        return f"  {duration(seconds)} left"

    def now(self) -> str:
        """Return where the run is and since when it is under way."""
        since = duration(monotonic() - self._begun)
        if not self._steps:
            return f"before the first step, for {since}"
        if self._step >= self._steps:
            return f"behind the last step, for {since} in all"
        return f"step {self._step:,}/{self._steps:,} is done, for {since} in all{self._pace_of_one()}{self.left()}"

    def _pace_of_one(self) -> str:
        done = self._step - self._from
        return f", {(monotonic() - self._first) / done:.3g} s a step" if done > 0 else ""


def describe(record: Mapping[str, Any]) -> str:
    """Return the measures of a record in one short line."""
    others = [key for key in record if key.startswith("val/") and key not in SHOWN]
    forms = UNITS | {key: f"{key.removeprefix('val/')} {{:.4f}}" for key in others}
    return "  ".join(form.format(record[key]) for key, form in forms.items() if record.get(key) is not None)
