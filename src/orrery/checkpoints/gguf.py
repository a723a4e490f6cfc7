"""The GGUF format of llama.cpp: facts and tensors in one file, written and read through the package ``gguf``."""

import importlib
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from orrery.checkpoints.disk import fsync_file, no_room
from orrery.checkpoints.gguf_file import Kind
from orrery.errors import MachineError, ModelFileError, UsageError
from orrery.settings import install

BLOCK = 32
"""Numbers that share one scale in q8_0 and q4_0."""

# What llama.cpp wants in float32 whatever the file's type: what it adds instead of multiplying with, biases by distance
# among it, gains, routers, and of state spaces the filters and the numbers of each head.
_WHOLE = re.compile(
    r"position_embd\.weight|.*\.(bias|ssm_[ad])|.*(_norm|attn_rel_b|ffn_gate_inp|ssm_conv1d|shortconv\.conv)\.weight"
)
_HALF_STEP = 2.0**-25
"""Half the distance of the smallest float16 numbers, which a scale may be off by."""


@dataclass(frozen=True)
class StoredKind:
    """How matrices are stored.

    Attributes:
        file_type: llama.cpp's number for such a file.
        largest: the largest magnitude that can be stored.
        dtype: of a plain format; nothing for a format of blocks.
        steps: of a format of blocks, the whole numbers on one side of zero.
        rounding: of a format of blocks, the largest error in steps.
    """

    file_type: int
    largest: float
    dtype: torch.dtype | None = None
    steps: int = 1
    rounding: float = 0.5


_HALF = torch.finfo(torch.float16).max
KINDS = {
    "f32": StoredKind(0, torch.finfo(torch.float32).max, torch.float32),
    "f16": StoredKind(1, _HALF, torch.float16),
    "bf16": StoredKind(32, torch.finfo(torch.bfloat16).max, torch.bfloat16),
    "q8_0": StoredKind(7, 127 * _HALF, steps=127),
    # The sixteen numbers are -8 to 7 with -8 at the largest magnitude: what lies opposite to it is cut by a whole step.
    "q4_0": StoredKind(2, 8 * _HALF, steps=8, rounding=1.0),
}


@dataclass(frozen=True)
class Content:
    """What a GGUF file holds: its facts, and its tensors in float32 with the kind in which each was stored."""

    facts: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    kinds: Mapping[str, str]


def library() -> Any:
    """Return the package ``gguf``.

    Raises:
        MachineError: it is not installed.
    """
    try:
        return importlib.import_module("gguf")
    except ImportError as error:
        raise MachineError(
            "GGUF needs the package gguf, which is not installed", f"{install('gguf')}, or pip install gguf"
        ) from error


def stays_float(name: str) -> bool:
    """Say whether llama.cpp wants a tensor of this name in float32 whatever the others are."""
    return _WHOLE.fullmatch(name) is not None


def kind_of(name: str, tensor: Tensor, kind: str, kept: Mapping[str, Kind] = MappingProxyType({})) -> str:
    """Return the kind of one tensor in a file of this kind: what is kept stays, and what is no matrix is float32."""
    if name in kept:
        return kept[name].name.lower()
    return kind if tensor.dim() > 1 and not stays_float(name) else "f32"


def check_storable(tensors: Mapping[str, Tensor], kind: str, kept: Collection[str] = ()) -> None:
    """Refuse tensors that a kind cannot hold, but for those that are kept in blocks that they have already.

    Raises:
        UsageError: rows are no whole blocks, or a number is beyond the range.
        ModelFileError: a number is infinite or none.
    """
    for name, tensor in tensors.items():
        if name in kept:
            continue
        stored = kind_of(name, tensor, kind)
        if KINDS[stored].dtype is None and tensor.shape[-1] % BLOCK:
            raise UsageError(
                f"{name} has rows of {tensor.shape[-1]} numbers, and {stored} stores blocks of {BLOCK}",
                "use --type f16, bf16 or f32",
            )
        peak = float(tensor.abs().max())
        if not peak < float("inf"):
            raise ModelFileError(f"{name} holds numbers that are not finite", "the model is broken: take another")
        if peak > KINDS[stored].largest:
            raise UsageError(f"{name} holds {peak:.4g}, beyond the range of {stored}", "use --type bf16 or f32")


def write_gguf(
    path: Path,
    architecture: str,
    facts: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    kind: str,
    kept: Mapping[str, Kind] = MappingProxyType({}),
) -> None:
    """Write a file and wait until it is on the disk.

    Args:
        path: of the file; what is there is overwritten.
        architecture: llama.cpp's name.
        facts: by full key; their types follow from the values (int, float, bool, str, or a list of one of them).
        tensors: under llama.cpp's names, in our order of axes.
        kind: of the matrices, one of ``KINDS``.
        kept: the kinds of tensors that are blocks already, uint8 with the bytes of a row.

    Raises:
        MachineError: the package is missing, or the disk is full.
    """
    package = library()
    writer = package.GGUFWriter(path, architecture)
    writer.add_file_type(_file_type(package, kind, kept))
    writer.add_quantization_version(package.GGML_QUANT_VERSION)
    for key, value in facts.items():
        writer.add_key_value(key, value, _value_type(package, value))
    for name, tensor in tensors.items():
        stored = _type(package, kind_of(name, tensor, kind, kept))
        if name in kept:
            writer.add_tensor_info(name, tensor.shape, np.dtype(np.uint8), tensor.nbytes, raw_dtype=stored)
            continue
        block, size = package.GGML_QUANT_SIZES[stored]
        needed = tensor.numel() // block * size
        writer.add_tensor_info(name, tensor.shape, np.dtype(np.float32), needed, raw_dtype=stored)
    try:
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for name, tensor in tensors.items():
            numbers = tensor.cpu().numpy() if name in kept else _stored(package, tensor, kind_of(name, tensor, kind))
            writer.write_tensor_data(numbers)
        writer.close()
    except OSError as error:
        with suppress(OSError):  # what is left in the buffer has no room either
            writer.close()
        if error.errno is None:  # numpy's word for a disk that took only part of an array
            raise no_room(path, sum(tensor.nbytes for tensor in tensors.values())) from error
        raise
    fsync_file(path)


def read_gguf(path: Path) -> Content:
    """Read a file that ``write_gguf`` wrote.

    Raises:
        MachineError: the package is missing.
    """
    package = library()
    reader = package.GGUFReader(path)
    facts = {key: field.contents() for key, field in reader.fields.items() if not key.startswith("GGUF.")}
    tensors: dict[str, Tensor] = {}
    kinds: dict[str, str] = {}
    for entry in reader.tensors:
        numbers = package.dequantize(entry.data, entry.tensor_type)
        tensors[entry.name] = torch.from_numpy(np.array(numbers, dtype=np.float32))
        kinds[entry.name] = entry.tensor_type.name.lower()
    return Content(facts, tensors, kinds)


def deviation(original: Tensor, read_back: Tensor, kind: str) -> tuple[float, bool]:
    """Return the largest difference between a tensor and what was read back, and whether the kind explains it all.

    A plain kind is exact to its cast. In a block of scale ``d = max|x| / steps`` a number is off by the rounding to a
    step, and by the rounding of ``d`` to float16: ``rounding * d + max|x| 2^-11 + steps 2^-25``.
    """
    original = original.detach().cpu()
    exact, plain = original.to(torch.float32), KINDS[kind].dtype
    if exact.shape != read_back.shape:
        return float("inf"), False
    worst = float((read_back - original).abs().max())
    if plain is not None:
        return worst, torch.equal(read_back, exact.to(plain).to(torch.float32))
    error = (read_back - exact).abs().reshape(-1, BLOCK)
    peak = exact.abs().reshape(-1, BLOCK).amax(1, keepdim=True)
    steps, rounding = KINDS[kind].steps, KINDS[kind].rounding
    # The last term is float32's own rounding in the products.
    bound = peak * (rounding / steps + 2.0**-11 + 2.0**-20) + steps * _HALF_STEP
    return worst, bool((error <= bound).all())


def _stored(package: Any, tensor: Tensor, kind: str) -> Any:
    """Return a tensor as the array whose bytes the file holds."""
    numbers = tensor.detach().cpu().to(torch.float32).contiguous().numpy()
    # A block of numbers near zero has a scale whose inverse overflows; it is stored as zeros.
    with np.errstate(all="ignore"):
        return package.quantize(numbers, _type(package, kind))


def _file_type(package: Any, kind: str, kept: Mapping[str, Kind]) -> int:
    """Return llama.cpp's number for a file: that of the kind which most of its matrices in blocks have, if any are."""
    names = [each.name for each in kept.values()]
    most = max(names, key=names.count, default="")
    known = package.LlamaFileType.__members__
    return next(
        (known[name] for name in (f"MOSTLY_{most}", f"MOSTLY_{most}_M") if name in known), KINDS[kind].file_type
    )


def _type(package: Any, kind: str) -> Any:
    return package.GGMLQuantizationType[kind.upper()]


def _value_type(package: Any, value: Any) -> Any:
    types = package.GGUFValueType
    names = {bool: types.BOOL, int: types.UINT32, float: types.FLOAT32, str: types.STRING, list: types.ARRAY}
    return names[type(value)]
