"""What the flags of ``orrery train`` ask for, whatever kind of recipe it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orrery.settings import runs_folder


@dataclass(frozen=True)
class TrainRequest:
    """A recipe, keys of it with new values, and what to do with them.

    Attributes:
        config: the file of the recipe, or a text.
        overrides: keys of the recipe with new values, as flags.
        output: the folder of the run; by default its name in the folder of runs.
        resume: go on from the newest sound checkpoint.
        overwrite: replace the run that is there.
        dry_run: print the plan alone.
        print_config: print the recipe alone.
    """

    config: Path
    overrides: Sequence[str]
    output: Path | None
    resume: bool
    overwrite: bool
    dry_run: bool
    print_config: bool

    def folder(self, name: str) -> Path:
        """Return the folder of a run of this name."""
        return self.output or runs_folder() / name
