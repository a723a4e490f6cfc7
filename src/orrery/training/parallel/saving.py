"""A file of tensors that several processes write: each writes its part, and the bytes are those of one process."""

import os
from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from orrery.checkpoints.manifest import file_sha256
from orrery.checkpoints.store import Checkpoint
from orrery.checkpoints.tensors import header_of, raw_bytes
from orrery.errors import MachineError
from orrery.training.distributed import Ranks
from orrery.training.parallel.shards import first_row, own_part, shared

DONE = ""
"""What the first process says in the place of a file, when nothing is left to write."""


def save_together(
    ranks: Ranks, checkpoint: Checkpoint, save: Callable[[Callable[[Path, dict[str, Tensor]], str]], object]
) -> None:
    """Save a checkpoint of which every process has a part: the folder appears complete, or not at all.

    Args:
        ranks: all of them call this.
        checkpoint: with the parts of this process.
        save: of the first process, with what writes a file of tensors.

    Raises:
        MachineError: a process could not write; nothing is left of the checkpoint.
    """
    if ranks.rank:
        follow(ranks, checkpoint)
        return
    try:
        save(lambda path, tensors: lead(ranks, path, tensors))
    except BaseException as error:
        ranks.told(f"{DONE}\n{getattr(error, 'message', error)}")
        raise
    ranks.told(DONE)


def lead(ranks: Ranks, path: Path, tensors: dict[str, Tensor]) -> str:
    """Begin a file, write this process's part while the others write theirs, and return its sha256."""
    start, places = header_of(tensors)
    with path.open("wb") as file:
        file.write(start)
        file.truncate(len(start) + max((place.end for place in places.values()), default=0))
        file.flush()
        os.fsync(file.fileno())
    ranks.told(str(path))
    write_part(ranks, path, tensors)
    return file_sha256(path)


def follow(ranks: Ranks, checkpoint: Checkpoint) -> None:
    """Write this process's part of each file that the first process begins, until it is done.

    Raises:
        MachineError: the first process could not save.
    """
    fault: OSError | MachineError | None = None
    files = iter(checkpoint.files())
    while (path := ranks.told(DONE)).partition("\n")[0] != DONE:
        try:
            write_part(ranks, Path(path), next(files)[1])
        except (OSError, MachineError) as error:
            fault = error  # the first one still says that it is done
    if path != DONE or fault is not None:
        reason = path.partition("\n")[2] or str(fault)
        raise MachineError(f"nothing was saved: {reason}", "see what the first process says")


def write_part(ranks: Ranks, path: Path, tensors: dict[str, Tensor]) -> None:
    """Write what this process has of a file's tensors, and wait until all have; of whole ones the first has all.

    Raises:
        OSError: it cannot be written here.
        MachineError: another process could not write its part.
    """
    fault: OSError | None = None
    try:
        start, places = header_of(tensors)
        with path.open("r+b") as file:
            for name, place in places.items():
                row = first_row(tensors[name]) if shared(tensors[name]) else None if ranks.rank else 0
                if row is not None:
                    size = (place.end - place.start) // max(1, place.shape[0]) if place.shape else 0
                    file.seek(len(start) + place.start + row * size)
                    file.write(raw_bytes(own_part(tensors[name])))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        fault = error
    if ranks.any(fault is not None):
        hint = "see what the other processes say; all need the same folder, and room on its disk"
        raise fault or MachineError(f"another process could not write its part of {path}", hint)
