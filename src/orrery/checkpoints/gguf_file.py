"""The GGUF format, read strictly: facts and places of tensors from the head of a file, the tensors as it is mapped.

All numbers are little-endian. The head is ``GGUF``, a version, two counts, the facts (a key, a type, a value) and the
tensors (a name, axes with the fastest first, a kind, an offset); the tensors' bytes follow, aligned.
"""

import math
import mmap
import re
import stat
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from orrery.checkpoints.stand_ins import stand_in
from orrery.errors import ModelFileError

MAGIC = b"GGUF"
OLDER = (b"tjgg", b"fmgg", b"lmgg", b"algg")
"""How files of the formats before it begin."""
VERSIONS = (2, 3)
FACT_LIMIT, ITEM_LIMIT, TEXT_LIMIT = 20_000, 8_000_000, 16_000_000
"""The most facts, the most items of all their lists together, and the most bytes of a text."""
TENSOR_LIMIT = 100_000
AXES, DEPTH = 4, 4
"""The most axes of a tensor, and the most lists within each other."""

NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Struct's letter by the number of a type; 7 is true or false."""
STRING, LIST = 8, 9
_AGAIN = "get the file again from its source"

PLAIN = {
    "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64,
    "I8": torch.int8, "I16": torch.int16, "I32": torch.int32, "I64": torch.int64,
}  # fmt: skip
"""Kinds whose numbers stand one after another."""


@dataclass(frozen=True)
class Kind:
    """How the numbers of a tensor are stored: ``size`` bytes for each ``block`` of them, under ggml's number."""

    name: str
    number: int
    block: int
    size: int


KINDS = {
    kind.number: kind
    for kind in (
        Kind("F32", 0, 1, 4), Kind("F16", 1, 1, 2), Kind("Q4_0", 2, 32, 18), Kind("Q4_1", 3, 32, 20),
        Kind("Q5_0", 6, 32, 22), Kind("Q5_1", 7, 32, 24), Kind("Q8_0", 8, 32, 34), Kind("Q8_1", 9, 32, 40),
        Kind("Q2_K", 10, 256, 84), Kind("Q3_K", 11, 256, 110), Kind("Q4_K", 12, 256, 144),
        Kind("Q5_K", 13, 256, 176), Kind("Q6_K", 14, 256, 210), Kind("Q8_K", 15, 256, 292),
        Kind("IQ2_XXS", 16, 256, 66), Kind("IQ2_XS", 17, 256, 74), Kind("IQ3_XXS", 18, 256, 98),
        Kind("IQ1_S", 19, 256, 50), Kind("IQ4_NL", 20, 32, 18), Kind("IQ3_S", 21, 256, 110),
        Kind("IQ2_S", 22, 256, 82), Kind("IQ4_XS", 23, 256, 136), Kind("I8", 24, 1, 1), Kind("I16", 25, 1, 2),
        Kind("I32", 26, 1, 4), Kind("I64", 27, 1, 8), Kind("F64", 28, 1, 8), Kind("IQ1_M", 29, 256, 56),
        Kind("BF16", 30, 1, 2), Kind("TQ1_0", 34, 256, 54), Kind("TQ2_0", 35, 256, 66), Kind("MXFP4", 39, 32, 17),
        Kind("NVFP4", 40, 64, 36), Kind("Q1_0", 41, 128, 18),
    )
}  # fmt: skip
"""By ggml's number: https://github.com/ggml-org/ggml/blob/master/include/ggml.h and the block structures beside it."""


@dataclass(frozen=True)
class GgufEntry:
    """Where a tensor lies: its kind, its shape with the slowest axis first, and its bytes in the file."""

    kind: Kind
    shape: tuple[int, ...]
    start: int
    end: int


class GgufFile(Mapping[str, Tensor]):
    """An open GGUF file: its head is checked at once, a tensor is the mapped bytes of the file.

    A plain tensor has its numbers and its shape; any other is uint8 with the bytes of a row in its last axis. What is
    written into one is seen by this process alone.

    Attributes:
        path: the file.
        facts: by full key; numbers, truths, texts and lists of them.
        entries: where each tensor lies.

    Raises ``ModelFileError`` naming the file for whatever is not exactly the format: counts and lengths beyond the
    file, a key or a tensor twice, an unknown type or kind, rows that are no whole blocks, ranges that overlap or end
    behind the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._map = _mapped(path)
        head = _Head(path, self._map)
        self.facts, self.entries = head.facts, head.entries

    def __getitem__(self, name: str) -> Tensor:
        entry = self.entries[name]
        if entry.start == entry.end:
            return torch.empty(entry.shape, dtype=PLAIN.get(entry.kind.name, torch.uint8))
        stored = torch.frombuffer(self._map, dtype=torch.uint8, count=entry.end - entry.start, offset=entry.start)
        if entry.kind.name in PLAIN:
            return stored.view(PLAIN[entry.kind.name]).reshape(entry.shape)
        return stored.reshape(stored_shape(entry))

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


def stored_shape(entry: GgufEntry) -> tuple[int, ...]:
    """Return the shape of a tensor's bytes: the last axis counts those of a row."""
    return (*entry.shape[:-1], entry.shape[-1] // entry.kind.block * entry.kind.size)


def _mapped(path: Path) -> mmap.mmap:
    """Map a file for reading; what is written into the map stays in this process."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # to open a pipe would wait for ever
            refuse(path, "is no regular file")
        if status.st_size < 24:
            refuse(path, f"is cut short: it has {status.st_size} bytes")
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    except FileNotFoundError as error:
        raise ModelFileError(f"{path} is missing", "check the path") from error
    except OSError as error:
        raise ModelFileError(f"{path} cannot be read: {error.strerror}", "check the path and its rights") from error


_BEGINNINGS: dict[bytes, tuple[str, str]] = {
    MAGIC[::-1]: ("does not begin with GGUF (its bytes are in the order of a big-endian machine)", _AGAIN),
    **{
        magic: ("is of a format before GGUF, which ended in 2023", "take a GGUF file of the same model")
        for magic in OLDER
    },
}
"""What other files begin with that have such a name: what they are, and what to do."""


def _instead(beginning: bytes) -> tuple[str, str]:
    """Return what a file is that does not begin as the format does, and what to do."""
    known = (said for start, said in _BEGINNINGS.items() if beginning.startswith(start))
    return stand_in(beginning) or next(known, ("does not begin with GGUF", _AGAIN))


class _Head:
    """The head of a file, read from its beginning."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path, self.data, self.at, self.items = path, data, 0, 0
        self.facts: dict[str, Any] = {}
        tensors, facts = self._counts()
        for _ in range(facts):
            key = self._text()
            if not key:
                refuse(path, "has a fact without a key; its counts may be wrong")
            if key in self.facts:
                refuse(path, f"has the key {key[:80]!r} twice")
            self.facts[key] = self._value(self._number("I"), key)
        places = dict(self._place() for _ in range(tensors))
        if len(places) < tensors:
            refuse(path, "has a tensor twice")
        self.entries = self._entries(places)

    def _counts(self) -> tuple[int, int]:
        """Read the beginning; return how many tensors and facts follow."""
        path = self.path
        if self.data[:4] != MAGIC:
            refuse(path, *_instead(self.data[:40]))
        self.at = 4
        version = self._number("I")
        if version not in VERSIONS:
            if int.from_bytes(version.to_bytes(4, "little"), "big") in VERSIONS:
                refuse(path, "is written for big-endian machines", "convert it for little-endian machines")
            refuse(
                path, f"has version {version} of the format; known: 2 and 3", "convert it again with llama.cpp of today"
            )
        tensors, facts = self._number("Q"), self._number("Q")
        if tensors > TENSOR_LIMIT or facts > FACT_LIMIT:
            refuse(path, f"says that it has {tensors:,} tensors and {facts:,} facts")
        return tensors, facts

    def _take(self, many: int) -> int:
        """Go over so many bytes; return where they began."""
        start, self.at = self.at, self.at + many
        if self.at > len(self.data):
            refuse(
                self.path,
                f"is cut short, or a length in it is wrong: {many:,} bytes at {start:,} of {len(self.data):,}",
            )
        return start

    def _number(self, letter: str) -> Any:
        form = "<" + letter
        return struct.unpack_from(form, self.data, self._take(struct.calcsize(form)))[0]

    def _text(self) -> str:
        size = self._number("Q")
        if size > TEXT_LIMIT:
            refuse(self.path, f"has a text of {size:,} bytes at {self.at:,} (at most {TEXT_LIMIT:,})")
        start = self._take(size)
        try:
            return self.data[start : start + size].decode("utf-8")
        except UnicodeDecodeError:
            refuse(self.path, f"has a text at {start:,} that is not UTF-8")

    def _value(self, kind: int, key: str, depth: int = 0) -> Any:
        if kind in NUMBERS:
            return self._number(NUMBERS[kind])
        if kind == STRING:
            return self._text()
        if kind != LIST:
            refuse(self.path, f"gives {key[:80]!r} the unknown type {kind}")
        if depth == DEPTH:
            refuse(self.path, f"has more than {DEPTH} lists within each other in {key[:80]!r}")
        inner, many = self._number("I"), self._number("Q")
        self.items += many
        if self.items > ITEM_LIMIT:
            refuse(self.path, f"says that {key[:80]!r} has {many:,} items (all lists together at most {ITEM_LIMIT:,})")
        if inner in NUMBERS:
            letter = "<" + NUMBERS[inner]
            size = struct.calcsize(letter)
            start = self._take(many * size)
            return np.frombuffer(self.data, np.dtype(letter), many, start).tolist()
        if inner == STRING:
            return self._texts(many)
        return [self._value(inner, key, depth + 1) for _ in range(many)]

    def _texts(self, many: int) -> list[str]:
        """Return the texts of a list; of a vocabulary's hundred thousand the usual one takes no call of its own."""
        data, size_of, texts = self.data, struct.Struct("<Q").unpack_from, list[str]()
        end = len(data) - 8
        while len(texts) < many:
            start = self.at + 8
            if self.at > end or (size := size_of(data, self.at)[0]) > TEXT_LIMIT or start + size > len(data):
                texts.append(self._text())  # which says what is wrong
                continue
            try:
                texts.append(str(data[start : start + size], "utf-8"))
            except UnicodeDecodeError:
                refuse(self.path, f"has a text at {start:,} that is not UTF-8")
            self.at = start + size
        return texts

    def _place(self) -> tuple[str, tuple[Kind, tuple[int, ...], int]]:
        """Read where one tensor lies: its kind, its shape, and its offset behind the head."""
        name = self._text()
        axes = self._number("I")
        if not 0 < axes <= AXES:
            refuse(self.path, f"gives the tensor {name[:80]!r} {axes} axes (at most {AXES})")
        shape = tuple(self._number("Q") for _ in range(axes))[::-1]
        number, offset = self._number("I"), self._number("Q")
        kind = KINDS.get(number)
        if kind is None:
            hint = "the program may be older than the file; one that was quantised otherwise, such as Q4_K_M, is read"
            refuse(self.path, f"stores the tensor {name[:80]!r} in the unknown kind {number}", hint)
        if shape[-1] % kind.block:
            refuse(self.path, f"stores rows of {shape[-1]:,} numbers of {name[:80]!r} in blocks of {kind.block}")
        return name, (kind, shape, offset)

    def _entries(self, places: Mapping[str, tuple[Kind, tuple[int, ...], int]]) -> dict[str, GgufEntry]:
        """Return where the tensors lie in the file."""
        alignment = self.facts.get("general.alignment", 32)
        if type(alignment) is not int or not 8 <= alignment <= 2**20 or alignment & (alignment - 1):
            refuse(self.path, f"has the alignment {str(alignment)[:40]}, which is no power of two from 8 on")
        first = -(-self.at // alignment) * alignment
        entries: dict[str, GgufEntry] = {}
        for name, (kind, shape, offset) in places.items():
            size = math.prod(shape) // kind.block * kind.size
            start = first + offset
            if offset % alignment:
                refuse(self.path, f"puts the tensor {name[:80]!r} at {offset:,}, which is no multiple of {alignment}")
            if start + size > len(self.data):
                missing = start + size - len(self.data)
                hint = "the download was not finished: get the file again from its source"
                refuse(self.path, f"is cut short: the tensor {name[:80]!r} ends {missing:,} bytes behind its end", hint)
            entries[name] = GgufEntry(kind, shape, start, start + size)
        end, before = 0, ""
        for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].end)):
            if entry.start < end:
                refuse(self.path, f"puts the tensors {before[:80]!r} and {name[:80]!r} over each other")
            end, before = entry.end, name
        return entries


_PART = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf")


def parts_of(path: Path) -> list[Path]:
    """Return all files of a model that is split, in order, or the one file of a whole one.

    Raises:
        ModelFileError: files of it are missing.
    """
    match = _PART.fullmatch(path.name)
    if match is None:
        return [path]
    many = int(match[3])
    parts = [path.with_name(f"{match[1]}-{number:05}-of-{many:05}.gguf") for number in range(1, many + 1)]
    if missing := [part.name for part in parts if not part.is_file()]:
        raise ModelFileError(
            f"{path.parent} lacks {len(missing)} of {many} files of this model: {', '.join(missing[:10])}",
            "get the missing files from the source of the others",
        )
    return parts


def refuse(path: Path, reason: str, hint: str = _AGAIN) -> NoReturn:
    """Raise the error of a file that is not what its name says."""
    raise ModelFileError(f"{path} {reason}", hint)
