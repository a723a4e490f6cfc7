"""A finished or interrupted run, as Python code meets it."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orrery.reports.frames import frame
from orrery.training.folder import RunFolder

if TYPE_CHECKING:
    from orrery.language_model.model import LanguageModel


@dataclass(frozen=True)
class Run:
    """A run's folder: ``run.load()`` is its model, ``run.records()`` its metrics.

    Attributes:
        folder: where it lies, absolute: a program may change its working folder.
        step: how many steps were done.
        best: the best value of the metric that decides, where one was measured: of the loss held back, unless the
            recipe names another.
    """

    folder: Path
    step: int
    best: float | None

    def records(self) -> list[dict[str, Any]]:
        """Return the lines of ``metrics.jsonl``."""
        return RunFolder(self.folder).records()

    def to_pandas(self) -> Any:
        """Return the lines of metrics as a ``pandas.DataFrame``, a row for each step that has one.

        Raises:
            MachineError: pandas is not installed.
        """
        return frame(self.records(), "step")

    def load(self, **how: Any) -> "LanguageModel":
        """Return the model; arguments as in ``orrery.load``."""
        from orrery.language_model.load import load

        return load(self.folder, **how)
