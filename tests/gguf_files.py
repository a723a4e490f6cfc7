"""GGUF files for tests: another file's facts and tensors, with its matrices in blocks of random bytes."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from orrery.checkpoints.gguf_file import KINDS, GgufFile, Kind

BY_NAME = {kind.name: kind for kind in KINDS.values()}
SCALES = {
    "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,), "Q2_K": (80, 82), "Q3_K": (108,),
    "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ4_NL": (0,), "IQ4_XS": (0,), "IQ2_XXS": (0,), "IQ2_XS": (0,),
    "IQ2_S": (0,), "IQ3_XXS": (0,), "IQ3_S": (0,), "IQ1_S": (0,), "TQ1_0": (52,), "TQ2_0": (64,),
}  # fmt: skip
"""Where in a block the float16 numbers stand that scale it."""


LARGEST = {
    "Q4_0": 8, "Q4_1": 15, "Q5_0": 16, "Q5_1": 31, "Q8_0": 127, "Q2_K": 45, "Q3_K": 128, "Q4_K": 945, "Q5_K": 1953,
    "Q6_K": 4064,
}  # fmt: skip
"""What a scale is multiplied with at most."""


def random_blocks(rows: int, width: int, kind: Kind, rng: np.random.Generator) -> Any:
    """Return a matrix of random bytes whose scales are small finite numbers."""
    blocks = rng.integers(0, 256, (rows * width // kind.block, kind.size), dtype=np.uint8)
    for at in SCALES.get(kind.name, ()):
        scales = (rng.standard_normal(len(blocks)) * 0.1 / LARGEST.get(kind.name, 25)).astype(np.float16)
        blocks[:, at : at + 2] = scales[:, None].view(np.uint8)
    if kind.name == "MXFP4":
        blocks[:, 0] = rng.integers(115, 121, len(blocks))
    if kind.name == "NVFP4":
        blocks[:, :4] = rng.integers(0x08, 0x20, (len(blocks), 4))
    if kind.name == "IQ1_M":  # the four high halves of bytes 49, 51, 53 and 55 are one float16 number
        blocks[:, 49::2] = blocks[:, 49::2] & 0x0F
        blocks[:, 55] |= 0x20
    return blocks.reshape(rows, width // kind.block * kind.size)


def rewritten(
    source: Path,
    target: Path,
    kind: str,
    facts: Mapping[str, Any] | None = None,
    only: Callable[[str], bool] = bool,
    others: Callable[[Mapping[str, torch.Tensor]], Mapping[str, torch.Tensor]] = dict,
) -> Path:
    """Write a file with the matrices of another in blocks of a kind, and with some facts changed.

    Args:
        source: in float32.
        target: the new file.
        kind: of the matrices, by ggml's name.
        facts: put in the place of the source's, or taken out where one is None.
        only: says of a name whether its matrix is stored so.
        others: makes of the tensors those of the new file.
    """
    file, rng, own = GgufFile(source), np.random.default_rng(0), BY_NAME[kind]
    writer = gguf.GGUFWriter(target, file.facts["general.architecture"])
    for key, value in {**file.facts, **(facts or {})}.items():
        if key != "general.architecture" and value is not None:
            writer.add_key_value(key, value, _type(value))
    for name, tensor in others({name: file[name] for name in file}).items():
        blocks = tensor.ndim >= 2 and tensor.dtype == torch.float32 and only(name) and own.block > 1
        if blocks and tensor.shape[-1] % own.block == 0 and not name.startswith(("position", "rope")):
            stored = random_blocks(math.prod(tensor.shape[:-1]), tensor.shape[-1], own, rng)
            stored = stored.reshape(*tensor.shape[:-1], -1)
            writer.add_tensor(name, stored, raw_dtype=gguf.GGMLQuantizationType[kind])
        else:
            writer.add_tensor(name, tensor.numpy())
    finish(writer)
    return target


def finish(writer: gguf.GGUFWriter) -> None:
    """Write all that a writer has been given."""
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _type(value: Any) -> Any:
    types = gguf.GGUFValueType
    names = {bool: types.BOOL, int: types.UINT32, float: types.FLOAT32, str: types.STRING, list: types.ARRAY}
    return names[type(value)]
