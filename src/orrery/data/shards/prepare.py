"""From a source and a tokenizer to a folder of token shards, in bounded memory, and resumable after a kill.

The source is a sequence of blocks. The index says how many of them are written and how many ids they gave; whatever
was written behind that is cut off when a killed preparation goes on. The blocks before are read again, not encoded
again, and their chained sha256 must be the one recorded: a source that changed is refused. Only a document that was
open then, with a tokenizer whose ids depend on all that goes before (SentencePiece), is encoded from its beginning.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from orrery.checkpoints.disk import NO_ROOM, free_bytes, machine_errors
from orrery.checkpoints.lock import folder_lock
from orrery.data.cleaning.shared_text import shared_text
from orrery.data.shards.encoding import (
    Assigned,
    Documents,
    ShardEncoder,
    assign,
    batches,
    chained,
    encode_ahead,
    measure,
)
from orrery.data.shards.index import NAME, Index, ShardPlan, SharedText, Split, remove_leftovers
from orrery.data.shards.large_text import ReadingOptions, read_blocks
from orrery.data.shards.parts import begin_part, join_parts, part_folder, remove_parts
from orrery.data.shards.writer import ShardWriter
from orrery.errors import DataError, MachineError

SHARD_TOKENS = 1 << 26
COMMIT_SECONDS = 5.0
COMPARING = "comparing what is trained on with what is held back"
JOINING = "joining the parts"


@dataclass(frozen=True)
class PreparationProgress:
    """How far a preparation is: bytes of text so far and in all (None: not known), tokens, and what else is done."""

    done: int
    total: int | None
    tokens: int
    doing: str = ""


def prepare(
    source: str | Path,
    tokenizer: ShardEncoder,
    folder: Path,
    reading: ReadingOptions | None = None,
    every: int = 20,
    shard_tokens: int = SHARD_TOKENS,
    report: Callable[[PreparationProgress], None] = lambda progress: None,
    part: tuple[int, int] | None = None,
) -> Index:
    """Write the shards of a source, each of ``shard_tokens`` ids, and return their index.

    About one document in ``every`` is held back by a hash of its name; of a single text the last tenth. A
    folder that an interrupted call left is continued: the end is the same, byte for byte; a finished one is
    compared with its source. ``part`` (3, 8) writes the third of eight parts into a folder of its own in ``folder``;
    once all are there a call without it joins them, to the same bytes. Raises `DataError` for a source, settings or
    tokenizer that changed since, and where nothing is left to train or to validate on; `MachineError` where it cannot
    be written.
    """
    reading = reading or ReadingOptions()
    tail, total = measure(read_blocks(source, reading, tokenizer.last_cut))
    plan = _plan(source, tokenizer, reading, shard_tokens=shard_tokens, every=every, tail=tail)

    def blocks() -> Iterator[Assigned]:
        return assign(read_blocks(source, reading, tokenizer.last_cut), every, tail)

    folder = part_folder(folder, part) if part else folder
    with machine_errors(folder), room_errors(folder), folder_lock(folder):
        remove_leftovers(folder)
        begun = _begin(folder, plan, lambda: begin_part(plan, blocks, part) if part else Index(plan=plan))
        with Preparation(folder, begun) as preparation:

            def told(doing: str = "") -> None:
                report(PreparationProgress(preparation.bytes, None if part else total, preparation.tokens, doing))

            def comparing(block: Assigned) -> Assigned:
                told(COMPARING)
                return block

            if not part:
                join_parts(preparation, lambda: told(JOINING))
            preparation.encode(blocks, Documents(tokenizer, plan.end, plan.opening), told)
            if part:
                return preparation.finish(None)
            preparation.check()
            index = preparation.finish(begun.shared or shared_text(*(map(comparing, blocks()) for _ in range(2))))
            remove_parts(folder)
            return index


def _plan(source: str | Path, tokenizer: ShardEncoder, reading: ReadingOptions, **settings: int | None) -> ShardPlan:
    return ShardPlan.model_validate(
        {
            "source": Path(source).name if Path(source).exists() else str(source),
            "tokenizer": tokenizer.fingerprint,
            "vocabulary": tokenizer.size,
            "opening": tokenizer.document_opening,
            "end": tokenizer.special("end"),
            **asdict(reading),
            **settings,
        }
    )


class Preparation:
    """The shards of both splits while they are written, and the index that says how far they are."""

    def __init__(self, folder: Path, begun: Index) -> None:
        """Go on behind what ``begun`` records."""
        self.folder, self.plan = folder, begun.plan
        self.writers = {split: ShardWriter(folder, split, begun.plan, begun.splits[split]) for split in begun.splits}
        self.blocks, self.source, self.complete = begun.blocks, begun.source, begun.complete
        self.shared, self.part = begun.shared, begun.part
        self._committed = monotonic()

    def __enter__(self) -> "Preparation":
        return self

    def __exit__(self, *error: object) -> None:
        with ExitStack() as stack:  # on a full disk closing one fails, and the other must still be closed
            for writer in self.writers.values():
                stack.callback(writer.close)

    @property
    def bytes(self) -> int:
        """Bytes of text written so far."""
        return sum(writer.bytes for writer in self.writers.values())

    @property
    def tokens(self) -> int:
        """Tokens written so far, in both splits."""
        return sum(writer.tokens for writer in self.writers.values())

    def skip(self, blocks: Iterator[Assigned]) -> int:
        """Read over what is already written; return the number of the block with which the open document begins.

        Raises `DataError` where it is no longer what it was.
        """
        digest, count, opened = "0" * 64, 0, 0
        for split, block in islice(blocks, self.blocks):
            digest, count = chained(digest, split, block), count + 1
            opened = count if block.last else opened
        grown = self.complete and self.part is None and next(blocks, None) is not None
        if grown or (digest, count) != (self.source, self.blocks):
            raise _changed(self.folder, "the content of the source is not what it was")
        return opened

    def encode(self, blocks: Callable[[], Iterator[Assigned]], documents: Documents, told: Callable[[], None]) -> None:
        """Read over what is written, and write the rest of the blocks, or of the part's."""
        rest = blocks()
        opened = self.skip(rest)
        documents.resume(islice(blocks(), opened, self.blocks))
        told()
        left = None if self.part is None else self.part.ends - self.blocks
        for batch, encoded in encode_ahead(batches(islice(rest, left)), documents):
            self.write(batch, encoded)
            told()

    def write(self, batch: list[Assigned], encoded: dict[Split, NDArray[np.uint32]]) -> None:
        """Write the ids of whole blocks; record it after a full shard, and every few seconds."""
        full = False
        for split, block in batch:
            self.source = chained(self.source, split, block)
            self.writers[split].count(block)
        for split, ids in encoded.items():
            full = self.writers[split].write(ids) or full
        self.blocks += len(batch)
        if full or monotonic() - self._committed > COMMIT_SECONDS:
            self.commit()

    def commit(self, complete: bool = False) -> Index:
        """Record what is written, once it is on the disk."""
        splits = {split: writer.sync() for split, writer in self.writers.items()}
        index = Index(
            complete=complete,
            plan=self.plan,
            blocks=self.blocks,
            source=self.source,
            splits=splits,
            shared=self.shared,
            part=self.part,
        )
        index.write(self.folder)
        self._committed = monotonic()
        return index

    def check(self) -> None:
        """Raise `DataError` where a split got no text."""
        for split, writer in self.writers.items():
            if not writer.bytes:
                documents = max(1, sum(other.documents for other in self.writers.values()))
                name = "training" if split == "train" else split
                self.discard()
                message = f"{documents} documents leave 0 tokens for {name}"
                raise DataError(message, "use more documents, or hold back more often")

    def finish(self, shared: SharedText | None) -> Index:
        """Finish the last shards and the index, with what both splits share; a part has not been compared."""
        self.shared = shared
        for writer in self.writers.values():
            writer.finish()
        return self.commit(complete=True)

    def discard(self) -> None:
        """Remove all that was written."""
        (self.folder / NAME).unlink()
        for split, writer in self.writers.items():
            writer.close()
            for file in self.folder.glob(f"{split}-*.tokens"):
                file.unlink()


def _begin(folder: Path, plan: ShardPlan, new: Callable[[], Index]) -> Index:
    """Return what the folder records, or a new index. Raises `DataError` where it is another preparation's."""
    index = Index.read(folder)
    if index is None:
        index = new()
        index.write(folder)
        return index
    for name, old in index.plan:
        now = getattr(plan, name)
        if old != now:
            before, after = (str(value)[:12] for value in (old, now))
            raise _changed(folder, f"{WORDS.get(name, name)} was {before}, now it is {after}")
    return index


@contextmanager
def room_errors(folder: Path) -> Iterator[None]:
    """Turn a full disk into `MachineError`: what the index records is safe, and can be continued."""
    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        message = f"no room to write {folder}: {error.strerror}, {free_bytes(folder):,} bytes free"
        raise MachineError(message, "free some space and run the same command again: it goes on from there") from error


# What a plan's settings are called where they differ.
WORDS = {
    "tail": "the source, or its size, changed: the place where validation begins",
    "tokenizer": "the tokenizer's fingerprint",
    "source": "the name of the source",
}


def _changed(folder: Path, what: str) -> DataError:
    message = f"{folder} holds another preparation: {what}"
    return DataError(message, f"give what it was made with, choose another folder, or delete {folder} to begin again")
