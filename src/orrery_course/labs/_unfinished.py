"""The seeds of a lab that is not finished: each is kept in a file, so that a killed call goes on with the next."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from orrery.checkpoints.disk import remove_tree, write_text
from orrery.errors import DataError
from orrery_course.labs._lab import Timed, measure

FOLDER = "unfinished"


@dataclass(frozen=True)
class Unfinished:
    """Measures a seed once, and from then on reads it from below ``folder``."""

    folder: Path

    def __call__(self, name: str, seed: int, quick: bool) -> Timed:
        """Return the numbers of a seed, measured now or by an earlier call.

        Raises:
            DataError: the file of an earlier call has no numbers.
        """
        path = self._of(name) / f"seed-{seed}{'-quick' if quick else ''}.json"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps(asdict(measure(name, seed, quick))))
        try:
            return Timed(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise DataError(f"{path} has no numbers of a lab: {error!r}", "remove it: its seed is run again") from error

    def forget(self, name: str) -> None:
        """Remove the seeds of a lab that is finished."""
        if self._of(name).exists():
            remove_tree(self._of(name))
        if (self.folder / FOLDER).exists() and not any((self.folder / FOLDER).iterdir()):
            (self.folder / FOLDER).rmdir()

    def _of(self, name: str) -> Path:
        return self.folder / FOLDER / name
