"""TensorBoard's event files, by the package ``tensorboard``."""

from pathlib import Path
from typing import Any, Literal

from orrery.reports.observers import (
    CheckpointSaved,
    Evaluated,
    Event,
    Observer,
    RunBegan,
    RunEnded,
    StepLearned,
    place,
    register,
)
from orrery.reports.observers._observer import package
from orrery.schema.section import Section

FOLDER = "tensorboard"


@register
class TensorBoard(Observer):
    """``observers/tensorboard/`` in the run's folder: measures as scalars, samples as texts.

    ``tensorboard --logdir RUN`` shows them. A run that is resumed says which steps come again, and TensorBoard drops
    what it had of them.
    """

    class Settings(Section):
        """There is nothing to set."""

        kind: Literal["tensorboard"] = "tensorboard"

    def __init__(self) -> None:
        self._writer_of = package("torch.utils.tensorboard", "tensorboard").SummaryWriter
        self._writer: Any = None
        self._folder = Path()

    def observe(self, event: Event) -> None:
        """Write scalars and texts; each is on its way to the disk before the run goes on."""
        match event:
            case RunBegan():
                self._open(event.folder, purge_step=event.first)
            case CheckpointSaved() if event.folder != self._folder:
                self._writer.close()
                self._open(event.folder)
            case Evaluated(sample=str(text)):
                self._writer.add_text("sample", text, event.step)
            case StepLearned() if event.record is not None:
                for name, value in event.numbers.items():
                    if name != "step":
                        self._writer.add_scalar(name, value, event.step)
                self._writer.flush()
            case RunEnded():
                self._writer.close()

    def _open(self, folder: Path, **how: Any) -> None:
        self._folder, self._writer = folder, self._writer_of(str(place(folder) / FOLDER), **how)
