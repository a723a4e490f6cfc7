"""From a corpus and a tokenizer to token shards for training and validation."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from orrery.data.corpora import Document
from orrery.data.shards import ShardInfo, write_shard
from orrery.data.splits import split_documents, split_tail
from orrery.errors import DataError


@runtime_checkable
class Encoder(Protocol):
    """What preparing needs of a tokenizer."""

    size: int

    @property
    def fingerprint(self) -> str:
        """Identity of the tokenizer, 64 hexadecimal digits."""
        ...

    def encode_parts(self, text: str) -> Iterator[list[int]]:
        """Yield the ids of a text, part by part."""
        ...

    def special(self, name: str) -> int:
        """Return the id of a control token."""
        ...


def split(documents: Iterable[Document], every: int = 20) -> tuple[list[Document], list[Document]]:
    """Hold back whole documents; of a single text its last tenth.

    Raises `DataError` where nothing is left to train or to validate on.
    """
    found = list(documents)
    if len(found) == 1:
        only = found[0]
        parts = split_tail(only.text)
        train, validation = ([Document(only.name, part)] if part else [] for part in parts)
    else:
        train, validation = split_documents(found, every)
    for name, part in (("training", train), ("validation", validation)):
        if not any(document.text for document in part):
            raise DataError(
                f"{len(found)} documents leave 0 tokens for {name}",
                "use more documents, or hold back more often",
            )
    return train, validation


def write_tokens(path: Path, documents: Iterable[Document], tokenizer: Encoder) -> ShardInfo:
    """Write the documents' ids one after another, each with the end token behind it, as one shard."""
    return write_shard(path, _ids(documents, tokenizer), tokenizer.size, tokenizer.fingerprint)


def _ids(documents: Iterable[Document], tokenizer: Encoder) -> Iterator[list[int]]:
    end = tokenizer.special("end")
    for document in documents:
        yield from tokenizer.encode_parts(document.text)
        yield [end]
