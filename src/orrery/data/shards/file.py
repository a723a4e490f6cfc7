"""Token ids on disk: a 64-byte header that says what they are, then the ids as they lie in memory."""

import hashlib
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from orrery.errors import DataError

MAGIC = b"ORRERYTK"
VERSION = 1
# Magic, format version, bytes an id, count, vocabulary, sha256 of the tokenizer.
HEADER = struct.Struct("<8sIIQQ32s")
WIDTHS: dict[int, np.dtype[Any]] = {2: np.dtype("<u2"), 4: np.dtype("<u4")}
MAKE_AGAIN = "make it again with `orrery data prepare`"
AT_ONCE = 1 << 20


@dataclass(frozen=True)
class ShardInfo:
    """What the header of a shard says: number of ids, vocabulary they stay below, whose ids they are."""

    count: int
    vocabulary: int
    tokenizer_fingerprint: str

    @property
    def dtype(self) -> np.dtype[Any]:
        """uint16 where the vocabulary is at most 65,536, else uint32."""
        return WIDTHS[2 if self.vocabulary <= 1 << 16 else 4]


@dataclass(frozen=True)
class Shard:
    """A shard open for reading: a slice is read from the disk, and checked, each time it is asked for.

    Every id handed out is below the vocabulary, whatever happened to the file since: the check is of the very
    copy that is returned. So a wrong id cannot reach an embedding, and opening a shard reads 64 bytes of it.
    A wrong id that is inside the vocabulary is found by its sha256 (`ShardSet.verify`).
    """

    path: Path
    info: ShardInfo

    @classmethod
    def open(cls, path: str | Path, tokenizer_fingerprint: str | None = None) -> "Shard":
        """Read and check the header. Raises `DataError` where it contradicts the file, or another tokenizer made it."""
        info = _read_header(Path(path))
        if tokenizer_fingerprint is not None and tokenizer_fingerprint != info.tokenizer_fingerprint:
            raise DataError(
                f"{path}: made by tokenizer {info.tokenizer_fingerprint[:12]}, not by {tokenizer_fingerprint[:12]}",
                "use the tokenizer that made it, or prepare the text again with this one",
            )
        return cls(Path(path), info)

    def __len__(self) -> int:
        return self.info.count

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return a copy of the ids from ``start`` to below ``stop``. Raises `DataError` for one that is no id."""
        offset = HEADER.size + start * self.info.dtype.itemsize
        try:
            ids = np.fromfile(self.path, self.info.dtype, stop - start, offset=offset)
        except FileNotFoundError:
            raise DataError(f"{self.path}: no such token shard", MAKE_AGAIN) from None
        if len(ids) != stop - start:
            raise DataError(f"{self.path}: ends before token {stop:,}", MAKE_AGAIN)
        check_range(ids, self.info.vocabulary, f"{self.path}: ", start)
        return ids

    @property
    def ids(self) -> NDArray[Any]:
        """All ids, in memory."""
        return self.read(0, len(self))

    def sha256(self) -> str:
        """Return the digest of the ids, each checked on the way; the header is not part of it."""
        digest = hashlib.sha256()
        for start in range(0, len(self), AT_ONCE):
            digest.update(self.read(start, min(start + AT_ONCE, len(self))).tobytes())
        return digest.hexdigest()


class ShardFile:
    """A shard being written: append, and either `finish` it or `sync` it to go on with `ShardFile` later.

    Until it is finished its header is empty, so that nothing takes it for a shard.
    """

    def __init__(self, path: Path, vocabulary: int, tokenizer_fingerprint: str, kept: int = 0) -> None:
        """Begin a shard, or go on with one behind its first ``kept`` ids. Raises `DataError` if it has fewer."""
        self.path, self.count = path, kept
        self._vocabulary, self._fingerprint = vocabulary, tokenizer_fingerprint
        self._dtype = ShardInfo(0, vocabulary, tokenizer_fingerprint).dtype
        self._digest = hashlib.sha256()
        self._file: IO[bytes] = self._reopen() if kept else open(path, "wb")  # noqa: SIM115 (open until `finish`)
        self._file.seek(0)
        self._file.write(bytes(HEADER.size))
        self._file.seek(0, os.SEEK_END)

    def append(self, ids: NDArray[Any]) -> None:
        """Write ids behind the others. Raises `DataError` for one outside the vocabulary: numpy would wrap it."""
        check_range(ids, self._vocabulary, f"{self.path}: ", self.count)
        content = ids.astype(self._dtype).tobytes()
        self._file.write(content)
        self._digest.update(content)
        self.count += len(ids)

    def sync(self) -> None:
        """Wait until all that was appended is on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def finish(self) -> str:
        """Write the header, close the file, and return the sha256 of the ids."""
        self.sync()  # the header must not reach the disk before the ids
        self._file.seek(0)
        fingerprint = bytes.fromhex(self._fingerprint)
        header = HEADER.pack(MAGIC, VERSION, self._dtype.itemsize, self.count, self._vocabulary, fingerprint)
        self._file.write(header)
        self.sync()
        self._file.close()
        return self._digest.hexdigest()

    def close(self) -> None:
        """Close the file as it is."""
        self._file.close()

    def _reopen(self) -> IO[bytes]:
        size = HEADER.size + self.count * self._dtype.itemsize
        real = self.path.stat().st_size if self.path.is_file() else 0
        if real < size:
            message = f"{self.path}: {real:,} bytes, fewer than the {size:,} already written"
            raise DataError(message, f"delete {self.path.parent} and prepare it again")
        file = open(self.path, "r+b")  # noqa: SIM115
        file.truncate(size)
        file.seek(HEADER.size)
        while content := file.read(AT_ONCE):
            self._digest.update(content)
        return file


def _read_header(path: Path) -> ShardInfo:
    if not path.is_file():
        raise DataError(f"{path}: no such token shard", MAKE_AGAIN)
    with open(path, "rb") as file:
        header = file.read(HEADER.size)
    if len(header) < HEADER.size or header[: len(MAGIC)] != MAGIC:
        raise DataError(f"{path}: not a token shard", MAKE_AGAIN)
    _, version, width, count, vocabulary, fingerprint = HEADER.unpack(header)
    info = ShardInfo(count, vocabulary, fingerprint.hex())
    if version != VERSION:
        raise DataError(f"{path}: written in format {version}, this is format {VERSION}", MAKE_AGAIN)
    if width != info.dtype.itemsize:
        raise DataError(f"{path}: {width} bytes an id do not fit a vocabulary of {vocabulary:,}", MAKE_AGAIN)
    expected, real = HEADER.size + count * width, path.stat().st_size
    if expected != real:
        raise DataError(f"{path}: {real:,} bytes instead of {expected:,}", MAKE_AGAIN)
    return info


def check_range(ids: NDArray[Any], vocabulary: int, where: str, start: int) -> None:
    """Raise `DataError` for the first id outside the vocabulary; ``start`` is the place of the first id."""
    if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= vocabulary):
        place = int(np.argmax((ids < 0) | (ids >= vocabulary)))
        raise DataError(
            f"{where}token id {int(ids[place])} at place {start + place} is outside the vocabulary of {vocabulary:,}",
            "the ids and the vocabulary come from different tokenizers",
        )
