"""The models of a run's checkpoints that are looked into: few in memory, whichever are asked for."""

from collections import OrderedDict
from collections.abc import Callable
from typing import final

from orrery.errors import UsageError
from orrery.language_model.load import load
from orrery.language_model.model import LanguageModel
from orrery.page.views._run import checkpoint, run_of, version_of

MOST = 2
"""Models of checkpoints in memory, beside the one that is served."""


@final
class CheckpointModels:
    """The models of one run, by the steps of their checkpoints; one that the run has written again is read again.

    Args:
        lm: the model that is served; the others are placed as it is.
        gone: told of each model that is let go of, before another is read.
    """

    def __init__(self, lm: LanguageModel, gone: Callable[[LanguageModel], None]) -> None:
        self.lm, self._gone = lm, gone
        self._held: OrderedDict[tuple[int, int], LanguageModel] = OrderedDict()

    def version(self, step: int | None) -> int:
        """Return what changes when a run writes another model at a step; 0 for the served one."""
        run = run_of(self.lm.folder)
        return 0 if step is None or run is None else version_of(checkpoint(run, step))

    def at(self, step: int | None) -> LanguageModel:
        """Return the model of a checkpoint, or the served one where no step is given.

        Raises:
            UsageError: the model belongs to no run, or the run has no such checkpoint.
            ModelFileError: its files are damaged.
        """
        if step is None:
            return self.lm
        run = run_of(self.lm.folder)
        if run is None:
            raise UsageError("this model belongs to no run, and so has no checkpoints", "serve the folder of a run")
        folder, name = checkpoint(run, step), (step, self.version(step))
        if name not in self._held:
            while len(self._held) >= MOST:
                self._gone(self._held.popitem(last=False)[1])
            device, kind = str(self.lm.device), str(self.lm.model.dtype).removeprefix("torch.")
            self._held[name] = load(folder, device, kind, say=lambda line: None, kernel="eager")
        self._held.move_to_end(name)
        return self._held[name]
