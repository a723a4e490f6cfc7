"""What a person sees while a run learns: a live bar on a terminal, plain lines elsewhere."""

from collections.abc import Mapping
from time import monotonic
from typing import Any, Protocol, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from orrery.reports.heartbeat import PAUSE, Heartbeat, duration
from orrery.training.processes import leads

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


@runtime_checkable
class Reporter(Protocol):
    """Where a run speaks: lines of text, and its progress."""

    def line(self, text: str) -> None:
        """Say one line."""
        ...

    def progress(self, step: int, steps: int, record: Mapping[str, Any] | None) -> None:
        """Show how far the run is; ``record`` is the line of metrics just written, if one was."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was found."""
        ...


class Silent:
    """Says nothing: ranks above 0, and tests."""

    def line(self, text: str) -> None:
        """Print nothing."""

    def progress(self, step: int, steps: int, record: Mapping[str, Any] | None) -> None:
        """Print nothing."""

    def close(self) -> None:
        """Release nothing: nothing is held."""


class Lines:
    """One plain line for every record of the metrics, with the time left; and one after ten seconds without a line."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._pace = Pace()
        self._heartbeat: Heartbeat | None = None

    def line(self, text: str) -> None:
        """Print a line as it is."""
        if self._heartbeat is None:
            self._heartbeat = Heartbeat(self._still_there, PAUSE)
        self._heartbeat.beat()
        self._print(text)

    def progress(self, step: int, steps: int, record: Mapping[str, Any] | None) -> None:
        """Print the record, if there is one."""
        self._pace.reached(step, steps)
        if record is not None:
            self.line(f"step {step:,}/{steps:,}  {describe(record)}{self._pace.left()}")

    def close(self) -> None:
        """Say nothing any more."""
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat = None

    def _still_there(self) -> None:
        self._print(self._pace.now())

    def _print(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


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


class Bar:
    """A live bar with steps, time left and the newest measures; lines scroll above it."""

    def __init__(self, console: Console) -> None:
        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[measures]}"),
        )
        self.bar = Progress(*columns, console=console)
        self.task = self.bar.add_task("training", total=None, measures="")
        self.bar.start()

    def line(self, text: str) -> None:
        """Print a line above the bar."""
        self.bar.console.print(text, markup=False, highlight=False)

    def progress(self, step: int, steps: int, record: Mapping[str, Any] | None) -> None:
        """Move the bar, and show the record's measures beside it."""
        self.bar.update(self.task, completed=step, total=steps)
        if record is not None:
            self.bar.update(self.task, measures=describe(record))

    def close(self) -> None:
        """Stop the bar and leave it standing."""
        self.bar.stop()


def describe(record: Mapping[str, Any]) -> str:
    """Return the measures of a record in one short line."""
    others = [key for key in record if key.startswith("val/") and key not in SHOWN]
    forms = UNITS | {key: f"{key.removeprefix('val/')} {{:.4f}}" for key in others}
    return "  ".join(form.format(record[key]) for key, form in forms.items() if record.get(key) is not None)


def find_reporter() -> Reporter:
    """Choose the bar on a terminal, lines elsewhere, silence in all processes of a run but the one that leads."""
    console = Console(stderr=True)
    if not leads():
        return Silent()
    return Bar(console) if console.is_terminal else Lines(console)
