"""A preparation in parts: each on a machine of its own, and joined to the bytes of one that was never parted.

Part 3 of 8 writes what lies between three and two eighths of the source's blocks into the folder ``part-3-of-8`` of the
preparation's. It begins as a preparation that goes on there does, so that the ids are the same, those of a document
that is open at its beginning too. Its index holds the chained sha256 before its first block: parts of different sources
do not join.
"""

import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from orrery.data.shards.encoding import Assigned, chained
from orrery.data.shards.index import NAME, Index, PartRecord, ShardPlan, Split, as_written
from orrery.data.shards.writer import ShardWriter
from orrery.errors import DataError, UsageError

AT_ONCE = 1 << 20
"""Ids that are copied at once."""
_FOLDER = re.compile(r"part-([0-9]+)-of-([0-9]+)")
_WRITTEN = re.compile(r"[a-z]+-[0-9]{5,}\.tokens|index\.json.*|\.?lock.*")


def parse_part(text: str) -> tuple[int, int]:
    """Return the numbers of ``3/8``, the third of eight parts. Raises `UsageError` for anything else."""
    found = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    number, of = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= of:
        raise UsageError(f"--part is {text}", "give the number of the part and how many there are: 1/8 to 8/8")
    return number, of


def part_folder(folder: Path, part: tuple[int, int]) -> Path:
    """Return where a part of a preparation lies."""
    return folder / f"part-{part[0]}-of-{part[1]}"


def begin_part(plan: ShardPlan, blocks: Callable[[], Iterator[Assigned]], part: tuple[int, int]) -> Index:
    """Return the index of a part of which nothing is written; reads the source up to there."""
    number, of = part
    count = sum(1 for _ in blocks())
    first, last = count * (number - 1) // of, count * number // of
    digest = "0" * 64
    for _, (split, block) in zip(range(first), blocks(), strict=False):
        digest = chained(digest, split, block)
    return Index(plan=plan, blocks=first, source=digest, part=PartRecord(after=digest, begins=first, ends=last))


@runtime_checkable
class Joined(Protocol):
    """What parts are joined to: the shards of both splits, and how much of the source is in them."""

    folder: Path
    plan: ShardPlan
    writers: dict[Split, ShardWriter]
    blocks: int
    source: str

    def commit(self) -> Index:
        """Record what is written."""
        ...


def join_parts(preparation: Joined, told: Callable[[], None]) -> None:
    """Write the parts that lie in the folder of a preparation, in their order, and say after each how far it is.

    Raises `DataError` where one is missing or unfinished, or is of another source or plan than what is before it.
    """
    for folder in parts_in(preparation.folder):
        index = Index.read(folder)
        assert index is not None
        assert index.part is not None
        if index.blocks <= preparation.blocks and index.part.begins < preparation.blocks:
            continue  # joined before a kill
        if (index.plan, index.part.begins, index.part.after) != (
            preparation.plan,
            preparation.blocks,
            preparation.source,
        ):
            message = f"{folder} does not go on where {preparation.folder} is: another source, tokenizer or setting"
            raise DataError(message, f"prepare the parts again, or delete {folder.parent}")
        for split, record in index.splits.items():
            writer, shards = preparation.writers[split], as_written(folder, index, split)
            for start in range(0, len(shards), AT_ONCE):
                writer.write(shards[start : start + AT_ONCE].astype(np.uint32))
            writer.add(record)
        preparation.blocks, preparation.source = index.blocks, index.source
        preparation.commit()
        told()


def parts_in(folder: Path) -> list[Path]:
    """Return the folders of the parts of a preparation in their order, none where it has no parts.

    Raises `DataError` where some of them are missing or unfinished, or there are those of two partings.
    """
    found = {match.groups(): path for path in _folders(folder) if (match := _FOLDER.fullmatch(path.name))}
    if not found:
        return []
    of = {int(each) for _, each in found}
    if len(of) > 1:
        numbers = " and of ".join(str(each) for each in sorted(of))
        raise DataError(f"{folder} holds parts of {numbers}", "delete those that you do not want")
    count = of.pop()
    paths = [part_folder(folder, (number, count)) for number in range(1, count + 1)]
    left = [number for number, path in enumerate(paths, 1) if not _done(path)]
    if left:
        message = (
            f"{folder}: of {count} parts {', '.join(map(str, left))} {'is' if len(left) == 1 else 'are'} not there"
        )
        raise DataError(message, f"give the same command with --part {left[0]}/{count}, or delete the folders of parts")
    return paths


def remove_parts(folder: Path) -> None:
    """Remove the folders of parts, which hold nothing else: a file of somebody's own stays, with its folder."""
    for path in _folders(folder):
        if _FOLDER.fullmatch(path.name) and all(_WRITTEN.fullmatch(file.name) for file in path.iterdir()):
            shutil.rmtree(path)


def _folders(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else ()


def _done(path: Path) -> bool:
    index = Index.read(path) if (path / NAME).is_file() else None
    return index is not None and index.part is not None and index.complete
