"""The index of a folder of token shards, and its shards as one long sequence of ids."""

import os
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from orrery.checkpoints.disk import write_text
from orrery.data.shards.file import Shard
from orrery.errors import DataError

NAME = "index.json"
Count = Annotated[int, Field(ge=0)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Split = Literal["train", "validation"]


class Record(BaseModel):
    """A closed record of the index."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ShardRecord(Record):
    """One finished shard: its file, the number of its ids, and their sha256."""

    file: Annotated[str, Field(pattern=r"^[a-z]+-[0-9]{5,}\.tokens$")]
    tokens: Count
    sha256: Digest


class SplitRecord(Record):
    """What was written of one split; ``tokens`` counts also those of a shard that is not finished yet."""

    documents: Count = 0
    bytes: Count = 0
    tokens: Count = 0
    shards: tuple[ShardRecord, ...] = ()


class SharedText(Record):
    """What stands on both sides of the split: of so many documents and long lines held back, each counted once.

    ``first`` is the name of the first document of the training side that is held back too.
    """

    documents: Count
    of_documents: Count
    first: str
    lines: Count
    of_lines: Count


class ShardPlan(Record):
    """All that decides the shards besides the source's content.

    ``source`` is its name alone, without folders; ``tail`` the character at which validation begins in a
    source of one document; ``opening`` and ``end`` stand around each document.
    """

    source: str
    tokenizer: Digest
    vocabulary: Count
    opening: tuple[Count, ...] = ()
    end: Count
    shard_tokens: Annotated[int, Field(ge=1)]
    every: Annotated[int, Field(ge=1)]
    tail: Count | None
    column: str
    invalid: Literal["error", "replace"]
    skip_bad: Count


class PartRecord(Record):
    """Which blocks of the source a part holds, and the chained sha256 of those before it."""

    begins: Count
    ends: Count
    after: Digest


class Index(Record):
    """The plan of a folder, how far it was carried out, and its shards.

    ``blocks`` of the source were written, whose chained sha256 is ``source``; ``complete`` once that was all, with what
    is ``shared`` by both splits, which older preparations did not record. A ``part`` has only some of the blocks.
    """

    format: Literal[1] = 1
    complete: bool = False
    plan: ShardPlan
    blocks: Count = 0
    source: Digest = "0" * 64
    splits: dict[Split, SplitRecord] = {"train": SplitRecord(), "validation": SplitRecord()}
    shared: SharedText | None = None
    part: PartRecord | None = None

    @classmethod
    def read(cls, folder: Path) -> "Index | None":
        """Return the index of a folder, or None where it has none. Raises `DataError` for a damaged one."""
        file = folder / NAME
        if not file.is_file():
            return None
        try:
            return cls.model_validate_json(file.read_bytes())
        except ValidationError as error:
            fault = error.errors()[0]
            place = ".".join(map(str, fault["loc"])) or "the whole"
            message = f"{file}: not an index of token shards: {place}: {fault['msg']}"
            raise DataError(message, f"delete {folder} and prepare it again") from None

    def write(self, folder: Path) -> None:
        """Replace the index in one step, so that a kill leaves the old one or this one."""
        alone = {"part"} if self.part is None else None
        write_text(folder / NAME, self.model_dump_json(indent=1, exclude=alone) + "\n")


class ShardSet:
    """The shards of one split as one sequence of ids: a slice may begin and end in any of them."""

    def __init__(self, shards: Sequence[Shard]) -> None:
        """Join shards, in order; they share one tokenizer."""
        self.shards = tuple(shards)
        self._starts = [0, *accumulate(map(len, self.shards))]
        self._dtype = self.shards[0].info.dtype if self.shards else np.dtype("<u2")

    @classmethod
    def open(cls, folder: str | Path, split: Split = "train", tokenizer_fingerprint: str | None = None) -> "ShardSet":
        """Open a split of a prepared folder; reads the index and each header, no ids.

        Raises `DataError` where the folder is unfinished, contradicts its index, or another tokenizer made it.
        """
        folder = Path(folder)
        return cls.open_part(folder, finished(folder), split, tokenizer_fingerprint)

    @classmethod
    def open_part(
        cls, folder: Path, index: Index, split: Split, tokenizer_fingerprint: str | None = None
    ) -> "ShardSet":
        """Open the finished shards of a split that an index names; raises `DataError` where one contradicts it."""
        shards = []
        for record in index.splits[split].shards:
            shard = Shard.open(folder / record.file, tokenizer_fingerprint)
            if len(shard) != record.tokens:
                message = f"{shard.path}: {len(shard):,} tokens, the index says {record.tokens:,}"
                raise DataError(message, "the file is of another preparation: prepare the folder again")
            shards.append(shard)
        return cls(shards)

    def __len__(self) -> int:
        return self._starts[-1]

    def __getitem__(self, span: slice) -> NDArray[Any]:
        """Return a copy of a slice without a step, as of an array; each id in it was checked."""
        start, stop, step = span.indices(len(self))
        if step != 1:
            raise ValueError("a slice of token shards has no step")
        parts = [np.zeros(0, self._dtype)]
        number = bisect_right(self._starts, start) - 1
        while start < stop:
            until = min(stop, self._starts[number + 1])
            if until > start:
                parts.append(self.shards[number].read(start - self._starts[number], until - self._starts[number]))
            start, number = until, number + 1
        return np.concatenate(parts)


def finished(folder: Path) -> Index:
    """Return the index of a finished preparation. Raises `DataError` where there is none."""
    index = Index.read(folder)
    if index is None:
        raise DataError(f"{folder}: no token shards", "make them with `orrery data prepare`")
    if not index.complete:
        message = f"{folder}: its preparation was interrupted after {index.blocks:,} blocks"
        raise DataError(message, "run the same `orrery data prepare` again: it goes on from there")
    if index.part is not None:
        message = f"{folder}: a part of a preparation"
        raise DataError(message, "join the parts: give the same `orrery data prepare` without a part")
    return index


def verify(folder: Path) -> int:
    """Read every id of a folder and return their number. Raises `DataError` for the first shard that changed."""
    index = finished(folder)
    return sum(len(as_written(folder, index, split)) for split in index.splits)


def as_written(folder: Path, index: Index, split: Split) -> ShardSet:
    """Read every id of a split and return its shards. Raises `DataError` for the first shard that changed."""
    opened = ShardSet.open_part(folder, index, split, index.plan.tokenizer)
    for shard, expected in zip(opened.shards, index.splits[split].shards, strict=True):
        if shard.sha256() != expected.sha256:
            raise DataError(f"{shard.path}: its ids changed since they were written", "prepare the folder again")
    return opened


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed write of the index left."""
    for file in folder.glob(f"{NAME}.tmp-*"):
        os.unlink(file)
