"""From a source and a tokenizer to a folder of token shards, in bounded memory, and resumable after a kill.

The source is a sequence of blocks. The index says how many of them are written and how many ids they gave; whatever
was written behind that is cut off when a killed preparation goes on. The blocks before are read again, not encoded
again, and their chained sha256 must be the one recorded: a source that changed is refused.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from orrery.checkpoints.disk import NO_ROOM, free_bytes, machine_errors
from orrery.checkpoints.lock import folder_lock
from orrery.data.large_text import Block, Reading, read_blocks
from orrery.data.shard_index import NAME, Index, Plan, Split, remove_leftovers
from orrery.data.shard_writer import ShardWriter
from orrery.data.splits import held_back, tail_start
from orrery.errors import DataError, MachineError

SHARD_TOKENS = 1 << 26
TOGETHER = 1 << 20
"""Characters that are encoded at once: enough for every core, little memory."""

COMMIT_SECONDS = 5.0

Assigned = tuple[Split, Block]


@runtime_checkable
class Encoder(Protocol):
    """What preparing needs of a tokenizer."""

    size: int
    cuttable: bool

    @property
    def fingerprint(self) -> str:
        """Identity of the tokenizer, 64 hexadecimal digits."""
        ...

    def parts(self, text: str) -> Iterator[str]:
        """Yield parts of a text whose ids, joined, are the text's."""
        ...

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """Return the ids of each text."""
        ...

    def special(self, name: str) -> int:
        """Return the id of a control token."""
        ...


@dataclass(frozen=True)
class Progress:
    """How far a preparation is: bytes of text so far and in all (None: not known), and tokens."""

    done: int
    total: int | None
    tokens: int


def prepare(
    source: str | Path,
    tokenizer: Encoder,
    folder: Path,
    reading: Reading | None = None,
    every: int = 20,
    shard_tokens: int = SHARD_TOKENS,
    report: Callable[[Progress], None] = lambda progress: None,
) -> Index:
    """Write the shards of a source, each of ``shard_tokens`` ids, and return their index.

    About one document in ``every`` is held back by a hash of its name; of a single text the last tenth. A
    folder that an interrupted call left is continued: the end is the same, byte for byte; a finished one is
    compared with its source. Raises `DataError` for a source, settings or tokenizer that changed since, and
    where nothing is left to train or to validate on; `MachineError` where it cannot be written.
    """
    reading = reading or Reading()
    tail, total = measure(read_blocks(source, reading, tokenizer.cuttable))
    plan = Plan(
        source=Path(source).name if Path(source).exists() else str(source),
        tokenizer=tokenizer.fingerprint,
        vocabulary=tokenizer.size,
        end=tokenizer.special("end"),
        shard_tokens=shard_tokens,
        every=every,
        tail=tail,
        **asdict(reading),
    )
    blocks = assign(read_blocks(source, reading, tokenizer.cuttable), every, tail)
    with machine_errors(folder), room_errors(folder), folder_lock(folder):
        remove_leftovers(folder)
        begun = _begin(folder, plan)
        with Preparation(folder, begun) as preparation:
            preparation.skip(blocks)
            report(Progress(preparation.bytes, total, preparation.tokens))
            for batch, encoded in encode_ahead(batches(blocks), tokenizer, plan.end):
                preparation.write(batch, encoded)
                report(Progress(preparation.bytes, total, preparation.tokens))
            return preparation.finish()


class Preparation:
    """The shards of both splits while they are written, and the index that says how far they are."""

    def __init__(self, folder: Path, begun: Index) -> None:
        """Go on behind what ``begun`` records."""
        self.folder, self.plan = folder, begun.plan
        self.writers = {split: ShardWriter(folder, split, begun.plan, begun.splits[split]) for split in begun.splits}
        self.blocks, self.source, self.complete = begun.blocks, begun.source, begun.complete
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

    def skip(self, blocks: Iterator[Assigned]) -> None:
        """Read over what is already written. Raises `DataError` where it is no longer what it was."""
        digest, count = "0" * 64, 0
        for split, block in islice(blocks, self.blocks):
            digest, count = chained(digest, split, block), count + 1
        grown = self.complete and next(blocks, None) is not None
        if grown or (digest, count) != (self.source, self.blocks):
            raise _changed(self.folder, "the content of the source is not what it was")

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
        index = Index(complete=complete, plan=self.plan, blocks=self.blocks, source=self.source, splits=splits)
        index.write(self.folder)
        self._committed = monotonic()
        return index

    def finish(self) -> Index:
        """Finish the last shards and the index. Raises `DataError` where a split got no text."""
        for split, writer in self.writers.items():
            if not writer.bytes:
                documents = max(1, sum(other.documents for other in self.writers.values()))
                name = "training" if split == "train" else split
                self.discard()
                message = f"{documents} documents leave 0 tokens for {name}"
                raise DataError(message, "use more documents, or hold back more often")
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


def measure(blocks: Iterable[Block]) -> tuple[int | None, int | None]:
    """Return where validation begins in a source of one document, in characters, and its bytes; else two None."""
    characters = size = documents = 0
    for block in blocks:
        if documents:
            return None, None
        characters += len(block.text)
        size += len(block.text.encode())
        documents += block.last
    return tail_start(characters), size


def assign(blocks: Iterable[Block], every: int, tail: int | None) -> Iterator[Assigned]:
    """Yield every block with its split; the block in which the tail begins becomes two."""
    seen = 0
    for block in blocks:
        if tail is None:
            yield "validation" if held_back(block.document, every) else "train", block
            continue
        head = block.text[: max(0, tail - seen)]
        rest = block.text[len(head) :]
        seen += len(block.text)
        if head:
            yield "train", Block(block.document, head, last=seen >= tail)
        if rest:
            yield "validation", Block(block.document, rest, block.last)


def batches(blocks: Iterable[Assigned]) -> Iterator[list[Assigned]]:
    """Yield consecutive blocks together, of `TOGETHER` characters or more but the last."""
    batch: list[Assigned] = []
    size = 0
    for split, block in blocks:
        batch.append((split, block))
        size += len(block.text)
        # Counted too: a million empty documents are a million end tokens.
        if size >= TOGETHER or len(batch) >= TOGETHER >> 6:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def encode_ahead(
    source: Iterable[list[Assigned]], tokenizer: Encoder, end: int
) -> Iterator[tuple[list[Assigned], dict[Split, NDArray[np.uint32]]]]:
    """Yield each batch with its ids by split; the next is encoded while the caller writes this one."""
    with ThreadPoolExecutor(1) as pool:
        waiting = None
        for batch in source:
            following = batch, pool.submit(encode, batch, tokenizer, end)
            if waiting:
                yield waiting[0], waiting[1].result()
            waiting = following
        if waiting:
            yield waiting[0], waiting[1].result()


def encode(batch: list[Assigned], tokenizer: Encoder, end: int) -> dict[Split, NDArray[np.uint32]]:
    """Return the ids of a batch by split, the end token behind each document."""
    parts = [list(tokenizer.parts(block.text)) for _, block in batch]
    found = iter(tokenizer.encode_batch([part for of_block in parts for part in of_block]))
    ids: dict[Split, list[int]] = {}
    for (split, block), of_block in zip(batch, parts, strict=True):
        into = ids.setdefault(split, [])
        for _ in of_block:
            into += next(found)
        if block.last:
            into.append(end)
    return {split: np.array(of_split, np.uint32) for split, of_split in ids.items()}


def chained(digest: str, split: Split, block: Block) -> str:
    """Return the sha256 of the source up to and with this block, from that up to the block before."""
    text, name = block.text.encode(), block.document.encode()
    head = f"{digest} {split} {block.last} {len(name)} {len(text)} ".encode()
    return hashlib.sha256(head + name + text).hexdigest()


def _begin(folder: Path, plan: Plan) -> Index:
    """Return what the folder records, or a new index. Raises `DataError` where it is another preparation's."""
    index = Index.read(folder)
    if index is None:
        index = Index(plan=plan)
        index.write(folder)
        return index
    for name, old in index.plan:
        new = getattr(plan, name)
        if old != new:
            old, new = (str(value)[:12] for value in (old, new))
            raise _changed(folder, f"{WORDS.get(name, name)} was {old}, now it is {new}")
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
    return DataError(message, f"give what it was made with, choose another folder, or delete {folder} to begin anew")
