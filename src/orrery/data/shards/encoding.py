"""Blocks of text to ids: each to its split, a batch at a time on every core, the next while one is written."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from orrery.data.shards.index import Split
from orrery.data.shards.large_text import TextBlock
from orrery.data.splits import held_back, tail_start
from orrery.text.streams import EncodingStream

TOGETHER = 1 << 20
"""Characters that are encoded at once: enough for every core, little memory."""

Assigned = tuple[Split, TextBlock]


@runtime_checkable
class ShardEncoder(Protocol):
    """What preparing needs of a tokenizer."""

    size: int

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

    def begin(self) -> EncodingStream | None:
        """Return the encoding of a text that comes part by part, or None where parts are encoded one by one."""
        ...

    def last_cut(self, text: str) -> int | None:
        """Return the last place at which a text may be cut, or None."""
        ...

    def special(self, name: str) -> int:
        """Return the id of a control token."""
        ...

    @property
    def document_opening(self) -> tuple[int, ...]:
        """What stands before each document."""
        ...


def measure(blocks: Iterable[TextBlock]) -> tuple[int | None, int | None]:
    """Return where validation begins in a source of one document, in characters, and its bytes; else two None."""
    characters = size = documents = 0
    for block in blocks:
        if documents:
            return None, None
        characters += len(block.text)
        size += len(block.text.encode())
        documents += block.last
    return tail_start(characters), size


def assign(blocks: Iterable[TextBlock], every: int, tail: int | None) -> Iterator[Assigned]:
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
            yield "train", TextBlock(block.document, head, last=seen >= tail)
        if rest:
            yield "validation", TextBlock(block.document, rest, block.last)


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
    source: Iterable[list[Assigned]], documents: "Documents"
) -> Iterator[tuple[list[Assigned], dict[Split, NDArray[np.uint32]]]]:
    """Yield each batch with its ids by split; the next is encoded while the caller writes this one."""
    with ThreadPoolExecutor(1) as pool:
        waiting = None
        for batch in source:
            following = batch, pool.submit(documents.encode, batch)
            if waiting:
                yield waiting[0], waiting[1].result()
            waiting = following
        if waiting:
            yield waiting[0], waiting[1].result()


class Documents:
    """Documents that come block by block, and their ids."""

    def __init__(self, tokenizer: ShardEncoder, end: int, opening: Sequence[int] = ()) -> None:
        """``end`` is the id that goes behind each document, ``opening`` those before it."""
        self._tokenizer = tokenizer
        self._end, self._opening = np.array([end], np.uint32), np.array(opening, np.uint32)
        self._begun = False
        self._open: EncodingStream | None = None

    def encode(self, batch: list[Assigned]) -> dict[Split, NDArray[np.uint32]]:
        """Return the ids of a batch by split."""
        ids_of_blocks = map(self._further, batch) if self._open or self._tokenizer.begin() else self._of_parts(batch)
        ids: dict[Split, list[NDArray[np.uint32]]] = {}
        for (split, block), of_block in zip(batch, ids_of_blocks, strict=True):
            before, behind = [] if self._begun else [self._opening], [self._end] if block.last else []
            ids.setdefault(split, []).extend([*before, *of_block, *behind])
            self._begun = not block.last
        return {split: np.concatenate(of_split) for split, of_split in ids.items()}

    def resume(self, blocks: Iterable[Assigned]) -> None:
        """Take the blocks of an open document whose ids are known, where the next ids depend on them."""
        streams = self._tokenizer.begin() is not None
        for assigned in blocks:
            self._begun = True
            if streams:
                self._further(assigned)

    def _of_parts(self, batch: list[Assigned]) -> Iterator[list[NDArray[np.uint32]]]:
        """Yield the ids of each block, whose parts are encoded all at once."""
        parts = [list(self._tokenizer.parts(block.text)) for _, block in batch]
        encoded = iter(self._tokenizer.encode_batch([part for of_block in parts for part in of_block]))
        for of_block in parts:
            yield [np.array(next(encoded), np.uint32) for _ in of_block]

    def _further(self, assigned: Assigned) -> list[NDArray[np.uint32]]:
        """Return the ids that a block adds to those of the blocks of its document before."""
        _, block = assigned
        stream = self._open or self._tokenizer.begin()
        assert stream is not None
        ids = stream.push(block.text)
        self._open = None if block.last else stream
        return [np.array(ids + stream.finish() if block.last else ids, np.uint32)]


def chained(digest: str, split: Split, block: TextBlock) -> str:
    """Return the sha256 of the source up to and with this block, from that up to the block before."""
    text, name = block.text.encode(), block.document.encode()
    head = f"{digest} {split} {block.last} {len(name)} {len(text)} ".encode()
    return hashlib.sha256(head + name + text).hexdigest()
