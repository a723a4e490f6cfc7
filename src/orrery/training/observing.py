"""Everybody who is told of a run: its folder, what shows its progress, and the observers that its recipe names."""

from collections.abc import Sequence

from orrery.reports.observers import Evaluated, Event, Observer, RunBegan, Said, StepLearned
from orrery.schema.registry import label_of
from orrery.training.folder import RunFolder
from orrery.training.progress import Reporter


class Kept(Observer):
    """The run's own files: ``log.txt``, ``metrics.jsonl`` and ``samples.jsonl``, without gap or repeat."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    def observe(self, event: Event) -> None:
        """Add a line to the file that it belongs into."""
        match event:
            case RunBegan():
                self.folder.rewind(event.first)
            case Said():
                self.folder.log(event.text)
            case Evaluated(sample=str(text)):
                self.folder.keep_sample(event.step, text)
            case StepLearned(record=record) if record is not None:
                self.folder.record(dict.fromkeys(record) | event.numbers)


class Shown(Observer):
    """What a person sees of the run while it learns."""

    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter

    def observe(self, event: Event) -> None:
        """Show a line, or how far the run is."""
        match event:
            case Said():
                self.reporter.line(event.text)
            case StepLearned():
                self.reporter.progress(event.step, event.steps, event.record)


class Observers:
    """Tells everybody in the same order.

    An error of those that belong to the run ends it. One of the others is said by the observer's name, who is told
    nothing more: no run is lost by who watches it.
    """

    def __init__(self, own: Sequence[Observer], others: Sequence[Observer]) -> None:
        self._own, self._others = own, list(others)

    def tell(self, event: Event) -> None:
        """Tell everybody what happened."""
        for observer in self._own:
            observer.observe(event)
        failed: list[tuple[Observer, Exception]] = []
        for observer in self._others:
            try:
                observer.observe(event)
            except Exception as error:
                failed.append((observer, error))
        self._others = [each for each in self._others if not any(each is observer for observer, _ in failed)]
        for observer, fault in failed:
            said = f"the observer {label_of(type(observer))} failed, and is told nothing more: "
            self.tell(Said(event.folder, f"{said}{type(fault).__name__}: {fault}"))
