"""llama.cpp's own quantiser, out of the wheel of xllamacpp: its blocks, and whole files as it writes them."""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import xllamacpp

from gguf_files import finish
from orrery.checkpoints.gguf_file import GgufFile

QUANTISED = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "IQ4_NL", "IQ4_XS")
"""The kinds that it makes without a matrix of what is important."""
NARROW = {"Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}
"""What it takes for rows that are no whole number of blocks of 256."""


@cache
def _library() -> ctypes.CDLL:
    (file,) = Path(xllamacpp.__file__).parent.glob("xllamacpp*.so")
    library = ctypes.CDLL(str(file))
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    return library


def blocks(numbers: Any, kind: str) -> Any:
    """Return a matrix ``[rows, width]`` in blocks of a kind, as bytes ``[rows, bytes of a row]``."""
    whole = np.ascontiguousarray(numbers, np.float32)
    type_ = gguf.GGMLQuantizationType[kind]
    block, size = gguf.GGML_QUANT_SIZES[type_]
    rows, width = whole.shape
    if width % block:
        raise ValueError(f"rows of {width} numbers are no whole number of blocks of {block}")
    made = np.empty((rows, width // block * size), np.uint8)
    pointer = ctypes.POINTER(ctypes.c_float)
    count = _library().ggml_quantize_chunk(
        ctypes.c_int(type_), whole.ctypes.data_as(pointer), made.ctypes.data_as(ctypes.c_void_p),
        ctypes.c_int64(0), ctypes.c_int64(rows), ctypes.c_int64(width), None,
    )  # fmt: skip
    assert count == made.nbytes
    return made


def kind_of_q4_k_m(name: str, layers: int) -> str:
    """Return the kind that llama.cpp's mixture Q4_K_M has for a matrix of a Llama with so many layers.

    llama-quant.cpp: the table before the logits has six bits, and so have the values and the second matrix of the
    feed-forward in the first and the last eighth of the layers and in every third between; all others have four.
    """
    if name in ("output.weight", "token_embd.weight"):
        return "Q6_K"
    layer = int(name.split(".")[1])
    more = layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2
    return "Q6_K" if more and name.endswith(("attn_v.weight", "ffn_down.weight")) else "Q4_K"


def write_q4_k_m(source: Path, target: Path) -> Path:
    """Write a Llama's file in float32 as Q4_K_M, and return it."""
    file = GgufFile(source)
    architecture = file.facts["general.architecture"]
    layers = file.facts[f"{architecture}.block_count"]
    writer = gguf.GGUFWriter(target, architecture)
    _copy_facts(source, writer)
    for name in file:
        numbers = file[name].numpy()
        if numbers.ndim < 2:
            writer.add_tensor(name, numbers)
            continue
        kind = kind_of_q4_k_m(name, layers)
        if numbers.shape[1] % 256:
            kind = NARROW[kind]
        writer.add_tensor(name, blocks(numbers, kind), raw_dtype=gguf.GGMLQuantizationType[kind])
    finish(writer)
    return target


def _copy_facts(source: Path, writer: gguf.GGUFWriter) -> None:
    for key, field in gguf.GGUFReader(source).fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        inner = field.types[1] if len(field.types) > 1 else None
        writer.add_key_value(key, field.contents(), field.types[0], inner)
