"""What a person sees while a run learns: a live bar on a terminal, plain lines elsewhere."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

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
    """One plain line for every record of the metrics."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def line(self, text: str) -> None:
        """Print a line as it is."""
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def progress(self, step: int, steps: int, record: Mapping[str, Any] | None) -> None:
        """Print the record, if there is one."""
        if record is not None:
            self.line(f"step {step:,}/{steps:,}  {describe(record)}")

    def close(self) -> None:
        """Release nothing: nothing is held."""


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
