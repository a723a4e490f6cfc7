"""What a person sees while a run learns: a live bar on a terminal, curves in a notebook, plain lines elsewhere."""

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from orrery.reports.heartbeat import PAUSE, Heartbeat
from orrery.training.live_curves import LiveCurves, notebook_display
from orrery.training.pace import Pace, describe
from orrery.training.processes import leads


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


def find_reporter() -> Reporter:
    """Choose the bar on a terminal, live curves in a notebook, lines elsewhere.

    All processes of a run but the one that leads are silent.
    """
    console, display = Console(stderr=True), notebook_display()
    if not leads():
        return Silent()
    if display is not None:
        return LiveCurves(display)
    return Bar(console) if console.is_terminal else Lines(console)
