"""The folder that many trainings are left in: who may write it, and who may go on with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from orrery.checkpoints.lock import NAME as LOCK
from orrery.checkpoints.lock import folder_lock
from orrery.errors import UsageError

TOKENIZER = "tokenizer"
"""The folder inside it of the tokenizer that all trainings share, which is there first."""


@contextmanager
def held_folder(folder: Path, resume: bool, result: str, what: str) -> Iterator[None]:
    """Hold the folder; only ``--resume`` may find something in it, and that with a result of the same kind.

    Args:
        folder: a new one, or what an earlier call left.
        resume: whether to go on with it.
        result: the name of the file that says what is done.
        what: what that file is of, in a word or two.

    Raises:
        UsageError: the folder is a file, or holds something else, or something to go on with without ``resume``.
        MachineError: another process writes there.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file", "choose another folder with --output")
    refuse_others(folder, resume, result, what)
    with folder_lock(folder):
        refuse_others(folder, resume, result, what)
        yield


def refuse_others(folder: Path, resume: bool, result: str, what: str) -> None:
    """Raise ``UsageError`` for a folder with something in it that is not of this kind and to go on with."""
    found = sorted(entry.name for entry in folder.iterdir() if entry.name != LOCK) if folder.exists() else []
    begun = result in found or all(
        name == TOKENIZER or name.startswith((f"{result}.tmp-", ".orrery-")) for name in found
    )
    message = f"{folder} is not empty: it has {', '.join(found[:3])}"
    if not begun:
        raise UsageError(f"{message}, and no {what}", "choose another folder with --output")
    if found and not resume:
        raise UsageError(message, "add --resume to go on with it, or choose another folder with --output")


def another_value(key: str, was: object, now: object) -> UsageError:
    """Return the error of a key that has changed between two calls."""
    message = f"--resume: {key} was {was!r} and is now {now!r}"
    return UsageError(message, "take the old value, or choose another folder with --output")
