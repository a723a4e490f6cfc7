"""The folder of a run of stages: which are finished, and which weights each began from."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from orrery.checkpoints import strict_json
from orrery.checkpoints.disk import machine_errors
from orrery.errors import ModelFileError, UsageError
from orrery.studies.kept import ELSEWHERE, Kept
from orrery.studies.stages.recipe import RESERVED, Stage, Staged
from orrery.training.folder import FINAL, LEFTOVER


@dataclass(frozen=True)
class Done:
    """How far a stage is.

    Attributes:
        begun: the sha256 of the weights of each stage that it was begun from.
        weights: the sha256 of its own final weights; nothing while it is not finished.
        seconds: that it took, over all times that it was continued.
        steps: that were done.
        replaces: the sha256 of all tensors of a run that is to be replaced, as long as it is there.
    """

    begun: Mapping[str, str] = field(default_factory=dict)
    weights: str | None = None
    seconds: float = 0.0
    steps: int = 0
    replaces: str | None = None


class StagesFolder:
    """The folders of the stages, and ``stages.json`` beside them."""

    def __init__(self, path: Path, staged: Staged) -> None:
        self.path, self.staged, self.kept = path, staged, Kept(path, "stages", "run of stages")

    def of(self, stage: Stage) -> Path:
        """Return the folder of a stage's run."""
        return self.path / stage.name

    def holds(self, stage: Stage) -> bool:
        """Say whether there is anything of a stage."""
        return self.of(stage).is_dir() and any(self.of(stage).iterdir())

    def replaced(self, stage: Stage) -> bool:
        """Say whether what the folder of a stage holds is a run that is to be replaced."""
        done = self.state().get(stage.name)
        return done is not None and done.replaces is not None and done.replaces == tensors_hash(self.of(stage))

    def refuse_others(self) -> None:
        """Raise `UsageError` where the folder holds what is no part of a run of stages."""
        known = {*RESERVED, *(stage.name for stage in self.staged.stages), *self.state()}
        entries = self.path.iterdir() if self.path.is_dir() else ()
        others = sorted(entry.name for entry in entries if entry.name not in known)
        others = [name for name in others if not LEFTOVER.fullmatch(name)]
        if others:
            message = f"{self.path} is not empty: it has {', '.join(others[:3])}, which is no stage of this recipe"
            raise UsageError(message, ELSEWHERE)

    def state(self) -> dict[str, Done]:
        """Return how far each stage is that was begun.

        Raises:
            ModelFileError: the file is damaged.
        """
        file = self.kept.result
        if not file.is_file():
            return {}
        try:
            content: Any = strict_json.parse(file.read_text(encoding="utf-8"))
            return {str(name): Done(**values) for name, values in content.items()}
        except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
            hint = "a run of stages writes it itself: start again in another folder with --output"
            raise ModelFileError(f"{file} does not say how far the stages are: {error}", hint) from error

    def note(self, stage: Stage, done: Done) -> None:
        """Write how far a stage is."""
        state = {**self.state(), stage.name: done}
        self.kept.note({name: asdict(one) for name, one in state.items()})

    def begun(self, stage: Stage) -> dict[str, str]:
        """Return the sha256 of the weights, as they are now, of the stages that one begins from."""
        return {name: weights_hash(self.path / name) for name in stage.begins}


def weights_hash(run: Path) -> str:
    """Return the sha256 of the final weights of a run.

    Raises:
        ModelFileError: there are none.
    """
    if not any((run / FINAL).glob("**/*.safetensors")):
        raise ModelFileError(f"{run} has no final weights", "its stage was not finished: --resume finishes it")
    return tensors_hash(run / FINAL)


def tensors_hash(folder: Path) -> str:
    """Return the sha256 of the tensors in a folder and below, which tells a run from the one that replaces it."""
    files = sorted(folder.glob("**/*.safetensors"))
    digest = hashlib.sha256()
    for file in files:
        with machine_errors(file), file.open("rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()
