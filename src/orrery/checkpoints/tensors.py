"""The safetensors format, read strictly and written durably: a JSON header, then the tensors' bytes."""

import hashlib
import json
import math
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import Tensor

from orrery.checkpoints import strict_json
from orrery.checkpoints.stand_ins import refuse_stand_in
from orrery.errors import ModelFileError

# 20,000 tensors at 800 bytes each; the format itself allows 100 MB, which takes a second just to parse.
HEADER_LIMIT = 16_000_000
TENSOR_LIMIT = 20_000
DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
    "F8_E8M0": torch.float8_e8m0fnu,
    "C64": torch.complex64,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U64": torch.uint64,
    "U32": torch.uint32,
    "U16": torch.uint16,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}


@dataclass(frozen=True)
class TensorEntry:
    """Where one tensor lies: ``start`` and ``end`` count bytes after the header."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int
    end: int


class TensorFile(Mapping[str, Tensor]):
    """An open safetensors file: the header is checked at once, each tensor is read when it is asked for.

    Raises ``ModelFileError`` naming the file for whatever is not exactly the format: a header too long, not
    JSON, with a key twice, more than 20,000 tensors, an unknown dtype, a negative size, ranges that overlap,
    leave holes or do not end with the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data_start, self.entries, self.metadata = read_header(path)

    def __getitem__(self, name: str) -> Tensor:
        entry = self.entries[name]
        data = torch.empty(entry.end - entry.start, dtype=torch.uint8)
        with self.path.open("rb") as file:
            file.seek(self.data_start + entry.start)
            got = file.readinto(data.numpy().data)
        if got != data.numel():
            refuse(self.path, f"tensor {name!r}: {data.numel():,} bytes expected, {got:,} read")
        return data.view(entry.dtype).reshape(entry.shape)

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read every tensor of a safetensors file into memory."""
    return dict(TensorFile(path))


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> str:
    """Write a safetensors file, wait until it is on the disk, and return its sha256 in hexadecimal.

    Errors of the disk pass through.
    """
    start, places = header_of(tensors, metadata)
    pieces: Iterator[bytes | memoryview] = chain([start], (raw_bytes(tensors[name]) for name in places))
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for piece in pieces:
            digest.update(piece)
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def header_of(
    tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None
) -> tuple[bytes, dict[str, TensorEntry]]:
    """Return the bytes that a safetensors file begins with, and where each tensor lies after them, in their order.

    Wide dtypes come first, so that every tensor is aligned to its own size.
    """
    order = sorted(tensors, key=lambda name: (-tensors[name].element_size(), name))
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    places, position = {}, 0
    for name in order:
        end = position + tensors[name].numel() * tensors[name].element_size()
        shape, dtype = list(tensors[name].shape), tensors[name].dtype
        header[name] = {"dtype": NAMES[dtype], "shape": shape, "data_offsets": [position, end]}
        places[name] = TensorEntry(dtype, tuple(shape), position, end)
        position = end
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, places


def raw_bytes(tensor: Tensor) -> memoryview:
    """View the bytes of a tensor in row-major order, copied to the CPU where it lies elsewhere."""
    if not tensor.numel():  # one that numpy made has a stride of 0, and then no bytes to view
        return memoryview(b"")
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data


def read_header(path: Path) -> tuple[int, dict[str, TensorEntry], dict[str, str]]:
    """Check the header of a safetensors file; return where the data starts, the entries and the metadata."""
    try:
        status = path.stat()
        size = status.st_size
        if not stat.S_ISREG(status.st_mode):  # to open a pipe would wait for ever
            refuse(path, "no regular file")
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > HEADER_LIMIT or 8 + length > size:
                refuse(path, f"a header of {length:,} bytes in a file of {size:,} (at most {HEADER_LIMIT:,})")
            raw = file.read(length)
    except FileNotFoundError as error:
        raise ModelFileError(f"{path} is missing", "check the path; is the folder complete?") from error
    if raw.count(b'"data_offsets"') > TENSOR_LIMIT:
        refuse(path, f"more than {TENSOR_LIMIT:,} tensors")
    try:
        header = strict_json.parse(raw)
    except (ValueError, RecursionError) as error:
        refuse(path, f"the header is not JSON: {error}")
    if not isinstance(header, dict):
        refuse(path, "the header is not a JSON object")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        refuse(path, "__metadata__ is not a map from strings to strings")
    entries = {name: read_entry(path, name, value) for name, value in header.items()}
    check_ranges(path, entries, expected_end=size - 8 - length, around=8 + length)
    return 8 + length, entries, metadata


def read_entry(path: Path, name: str, value: Any) -> TensorEntry:
    """Check one tensor's entry for its keys, types, dtype, and a size that agrees with its range."""
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        refuse(path, f"tensor {name!r}: exactly dtype, shape and data_offsets are expected")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if dtype not in DTYPES:
        refuse(path, f"tensor {name!r}: unknown dtype {str(dtype)[:20]!r}")
    numbers = isinstance(shape, list) and isinstance(offsets, list) and len(offsets) == 2
    if not numbers or not all(type(number) is int and number >= 0 for number in (*shape, *offsets)):
        refuse(path, f"tensor {name!r}: sizes must be whole numbers of at least 0")
    needed = math.prod(shape) * DTYPES[dtype].itemsize
    if needed != offsets[1] - offsets[0] or needed >= 2**63:
        refuse(path, f"tensor {name!r}: its shape needs {needed:.6g} bytes, its range has other {offsets}")
    return TensorEntry(DTYPES[dtype], tuple(shape), offsets[0], offsets[1])


def check_ranges(path: Path, entries: Mapping[str, TensorEntry], expected_end: int, around: int) -> None:
    """Check that the tensors cover the file's data exactly: no overlap, no hole, nothing cut off or added."""
    position = 0
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].start, item[1].end)):
        if entry.start != position:
            kind = "overlaps another" if entry.start < position else "leaves a hole before it"
            refuse(path, f"tensor {name!r} {kind}")
        position = entry.end
    if position != expected_end:
        refuse(path, f"{around + position:,} bytes expected, the file has {around + expected_end:,}")


def refuse(path: Path, reason: str) -> NoReturn:
    """Raise the one error of this module, or that of what stands in the file's place."""
    refuse_stand_in(path)
    raise ModelFileError(f"{path} is not a sound safetensors file: {reason}", "get the file again from its source")
