"""The law of resume: a run that was cut off and continued ends with the bytes of one that never was."""

from collections.abc import Iterator
from pathlib import Path

from orrery.errors import RunError
from orrery.laws.evidence import Evidence, exactly_equal
from orrery.laws.runs import scratch, train

STEPS, CUT = 4, 3
"""A checkpoint comes after every second step, so one step is lost and done again."""


def check(family: str) -> Iterator[Evidence]:
    """Train four steps with dropout and accumulation, once through, and once with a failure in the fourth.

    Raises:
        CannotRunError: the training loop is not part of this installation.
    """
    with scratch() as folder:
        whole, broken = folder / "whole", folder / "broken"
        train(family, whole, steps=STEPS, dropout=0.2)
        try:
            train(family, broken, steps=STEPS, dropout=0.2, fail_at=CUT)
        except RunError:
            train(family, broken, steps=STEPS, dropout=0.2)
        files, again = final_files(whole), final_files(broken)
    differing = sum(files.get(name) != again.get(name) for name in files.keys() | again.keys())
    yield exactly_equal("files of weights and optimizer whose bytes differ", "resume", family, differing)


def final_files(folder: Path) -> dict[str, bytes]:
    """Return the tensors of the last checkpoint, as bytes."""
    last = max((folder / "checkpoints").glob("step-*"), key=lambda path: int(path.name.removeprefix("step-")))
    return {path.name: path.read_bytes() for path in last.glob("*.safetensors")}
