"""Token ids on disk: a 64-byte header that says what they are, then the ids as they lie in memory."""

import os
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.errors import DataError

MAGIC = b"ORRERYTK"
VERSION = 1
# Magic, format version, bytes an id, count, vocabulary, sha256 of the tokenizer.
HEADER = struct.Struct("<8sIIQQ32s")
WIDTHS: dict[int, np.dtype[Any]] = {2: np.dtype("<u2"), 4: np.dtype("<u4")}
MAKE_AGAIN = "make it again with `orrery data prepare`"
CHECKED_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class ShardInfo:
    """What the header of a shard says: number of ids, vocabulary they stay below, whose ids they are."""

    count: int
    vocabulary: int
    dtype: np.dtype[Any]
    tokenizer_fingerprint: str


def write_shard(
    path: str | Path,
    ids: NDArray[Any] | Iterable[Sequence[int] | NDArray[Any]],
    vocabulary: int,
    tokenizer_fingerprint: str,
) -> ShardInfo:
    """Write ids part by part, as uint16 where the vocabulary is at most 65,536, else uint32.

    ``ids`` is an iterable of sequences, or one array; ``tokenizer_fingerprint`` the 64 hexadecimal digits of
    `Tokenizer.fingerprint`. The file appears complete or not at all. Raises `DataError` for an id outside the
    vocabulary: numpy alone would wrap it silently.
    """
    path = Path(path)
    dtype = WIDTHS[2 if vocabulary <= 1 << 16 else 4]
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    count = 0
    try:
        with open(temporary, "wb") as file:
            file.write(bytes(HEADER.size))
            for part in _parts(ids):
                _check_range(part, vocabulary, f"{path}: ", count)
                file.write(part.astype(dtype).tobytes())
                count += len(part)
            file.seek(0)
            fingerprint = bytes.fromhex(tokenizer_fingerprint)
            file.write(HEADER.pack(MAGIC, VERSION, dtype.itemsize, count, vocabulary, fingerprint))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return ShardInfo(count, vocabulary, dtype, tokenizer_fingerprint)


@dataclass(frozen=True)
class Shard:
    """A shard open for reading: ``ids`` stay on disk until they are touched."""

    info: ShardInfo
    ids: NDArray[Any]

    @classmethod
    def open(cls, path: str | Path, tokenizer_fingerprint: str | None = None) -> "Shard":
        """Map a shard. Raises `DataError` where it is damaged, or another tokenizer made it."""
        path = Path(path)
        info = _read_header(path)
        if tokenizer_fingerprint is not None and tokenizer_fingerprint != info.tokenizer_fingerprint:
            raise DataError(
                f"{path}: made by tokenizer {info.tokenizer_fingerprint[:12]}, not by {tokenizer_fingerprint[:12]}",
                "use the tokenizer that made it, or prepare the text again with this one",
            )
        if info.count == 0:  # nothing to map
            return cls(info, np.zeros(0, info.dtype))
        ids = np.memmap(path, info.dtype, mode="r", offset=HEADER.size, shape=(info.count,))
        for start in range(0, info.count, CHECKED_AT_ONCE):
            _check_range(ids[start : start + CHECKED_AT_ONCE], info.vocabulary, f"{path}: ", start)
        return cls(info, ids)


def _read_header(path: Path) -> ShardInfo:
    if not path.is_file():
        raise DataError(f"{path}: no such token shard", MAKE_AGAIN)
    with open(path, "rb") as file:
        header = file.read(HEADER.size)
    if len(header) < HEADER.size or header[: len(MAGIC)] != MAGIC:
        raise DataError(f"{path}: not a token shard", MAKE_AGAIN)
    _, version, width, count, vocabulary, fingerprint = HEADER.unpack(header)
    if version != VERSION:
        raise DataError(f"{path}: written in format {version}, this is format {VERSION}", MAKE_AGAIN)
    if width != (2 if vocabulary <= 1 << 16 else 4):
        raise DataError(f"{path}: {width} bytes an id do not fit a vocabulary of {vocabulary:,}", MAKE_AGAIN)
    expected, real = HEADER.size + count * width, path.stat().st_size
    if expected != real:
        raise DataError(f"{path}: {real:,} bytes instead of {expected:,}", MAKE_AGAIN)
    return ShardInfo(count, vocabulary, WIDTHS[width], fingerprint.hex())


def _parts(ids: NDArray[Any] | Iterable[Sequence[int] | NDArray[Any]]) -> Iterator[NDArray[Any]]:
    parts = [ids] if isinstance(ids, np.ndarray) else ids
    for part in parts:
        array = np.asarray(part)
        yield array.astype(np.int64) if array.size == 0 else array


def _check_range(ids: NDArray[Any], vocabulary: int, where: str, start: int) -> None:
    if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= vocabulary):
        place = int(np.argmax((ids < 0) | (ids >= vocabulary)))
        raise DataError(
            f"{where}token id {int(ids[place])} at place {start + place} is outside the vocabulary of {vocabulary:,}",
            "the ids and the vocabulary come from different tokenizers",
        )
