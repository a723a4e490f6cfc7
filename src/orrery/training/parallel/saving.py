"""A file of tensors that several processes write: each writes its part, and the bytes are those of one process."""

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from torch import Tensor

from orrery.checkpoints.manifest import file_sha256
from orrery.checkpoints.store import Checkpoint
from orrery.checkpoints.tensors import header_of, raw_bytes
from orrery.errors import MachineError
from orrery.training.distributed import Ranks
from orrery.training.parallel.shards import is_first, own_part, part_of, shared

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
        reason = fault if isinstance(fault, OSError) else path.partition("\n")[2]
        raise MachineError(f"nothing was saved: {reason}", "see what the other processes say; all need the same folder")


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
                tensor = tensors[name]
                if is_first(tensor) if shared(tensor) else not ranks.rank:
                    for begin, piece in pieces_of(tensor):
                        file.seek(len(start) + place.start + begin * tensor.element_size())
                        file.write(raw_bytes(piece))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        fault = error
    if ranks.any(fault is not None):
        hint = "see what the other processes say; all need the same folder, and room on its disk"
        raise fault or MachineError(f"another process could not write its part of {path}", hint)


def pieces_of(tensor: Tensor) -> Iterator[tuple[int, Tensor]]:
    """Yield what this process has of a tensor, in pieces that lie in a row, each with the place of its first number."""
    own = own_part(tensor)
    if not shared(tensor):
        yield 0, own
        return
    shape, part = tensor.shape, part_of(tensor.shape, tensor.device_mesh, tensor.placements)  # type: ignore[attr-defined]
    whole_rows = all(one.stop - one.start == count for one, count in zip(part[1:], shape[1:], strict=True))
    size = math.prod(shape[1:])
    if whole_rows:
        yield part[0].start * size, own
        return
    # Only matrices are cut along their columns.
    for row, numbers in enumerate(own, part[0].start):
        yield row * size + part[1].start, numbers
