"""Writes the ids of one split into shards of a fixed number of ids."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orrery.data.shards.file import ShardFile
from orrery.data.shards.index import ShardPlan, ShardRecord, Split, SplitRecord
from orrery.data.shards.large_text import TextBlock


class ShardWriter:
    """Appends to the shards of a split; `sync` says what is on the disk, and such a record can be continued."""

    def __init__(self, folder: Path, split: Split, plan: ShardPlan, begun: SplitRecord) -> None:
        """Go on behind what ``begun`` records; what a shard holds beyond that is cut off."""
        self.folder, self.split, self.plan = folder, split, plan
        self.documents, self.bytes, self.tokens = begun.documents, begun.bytes, begun.tokens
        self.shards = list(begun.shards)
        kept = begun.tokens - sum(shard.tokens for shard in begun.shards)
        self._file = self._open(kept) if kept else None

    def count(self, block: TextBlock) -> None:
        """Count the text of a block."""
        self.bytes += len(block.text.encode())
        self.documents += block.last

    def add(self, record: SplitRecord) -> None:
        """Count the text of a part, whose ids are written."""
        self.bytes += record.bytes
        self.documents += record.documents

    def write(self, ids: NDArray[np.uint32]) -> bool:
        """Append ids; return whether that filled a shard."""
        before = len(self.shards)
        while len(ids):
            self._file = self._file or self._open()
            room = self.plan.shard_tokens - self._file.count
            self._file.append(ids[:room])
            self.tokens += len(ids[:room])
            ids = ids[room:]
            if self._file.count == self.plan.shard_tokens:
                self.finish()
        return len(self.shards) > before

    def sync(self) -> SplitRecord:
        """Wait until everything is on the disk, and return what that is."""
        if self._file:
            self._file.sync()
        return SplitRecord(documents=self.documents, bytes=self.bytes, tokens=self.tokens, shards=tuple(self.shards))

    def finish(self) -> None:
        """Finish the open shard, if there is one."""
        if self._file:
            count, digest = self._file.count, self._file.finish()
            self.shards.append(ShardRecord(file=self._file.path.name, tokens=count, sha256=digest))
            self._file = None

    def close(self) -> None:
        """Leave the open shard as it is."""
        if self._file:
            self._file.close()

    def _open(self, kept: int = 0) -> ShardFile:
        path = self.folder / f"{self.split}-{len(self.shards):05}.tokens"
        return ShardFile(path, self.plan.vocabulary, self.plan.tokenizer, kept)
