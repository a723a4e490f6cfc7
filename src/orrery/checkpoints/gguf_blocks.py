"""What the blocks of a GGUF tensor stand for: each kind's formula, in float32 and in the order of ggml's own.

A block of ``Q4_1`` is a scale d, a least number m and whole numbers q: it stands for ``d q + m``. The kinds with K have
256 numbers a block, whose scales and least numbers are whole numbers themselves. What is not written here, the tables
of the IQ kinds and such, the package ``gguf`` unpacks.
"""

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from orrery.checkpoints.gguf_file import KINDS, PLAIN, Kind
from orrery.kernels.step.codes import FLOAT4

BY_NAME = {kind.name: kind for kind in KINDS.values()}
AT_ONCE = 1 << 22
"""Numbers that are unpacked at a time: what is needed beside the result stays below 100 MB."""


def unpacked(stored: Tensor, kind: Kind, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return the numbers that stored bytes stand for.

    Args:
        stored: of a plain kind the numbers; of another uint8 ``[..., bytes of a row]``.
        kind: how they are stored.
        dtype: of the result; the numbers are float32 before they are rounded to it.

    Raises:
        MachineError: the kind needs the package ``gguf``, which is not installed.
        ModelFileError: no reader has this kind.
    """
    if kind.name in PLAIN:
        return stored.to(dtype)
    blocks = stored.reshape(-1, kind.size)
    numbers = torch.empty((len(blocks), kind.block), dtype=dtype)
    step, formula = max(1, AT_ONCE // kind.block), FORMULAS.get(kind.name) or _by_package(kind)
    for first in range(0, len(blocks), step):
        numbers[first : first + step] = formula(blocks[first : first + step])
    return numbers.reshape(*stored.shape[:-1], -1)


def _by_package(kind: Kind) -> Callable[[Tensor], Tensor]:
    """Return the formula of a kind that the package knows."""
    from orrery.checkpoints.gguf import library
    from orrery.errors import ModelFileError

    package = library()
    stored_as = package.GGMLQuantizationType.__members__.get(kind.name)
    if stored_as not in package.quants._type_traits:
        raise ModelFileError(
            f"nothing here unpacks {kind.name}", "take a file with weights of another kind, such as Q8_0"
        )
    return lambda blocks: torch.from_numpy(np.ascontiguousarray(package.dequantize(blocks.numpy(), stored_as)))


def _half(blocks: Tensor, at: int) -> Tensor:
    """Return the float16 number ``at`` this byte of each block, as float32 ``[blocks, 1]``."""
    return blocks[:, at : at + 2].contiguous().view(torch.float16).float()


def _halves(packed: Tensor) -> Tensor:
    """Return the low four bits of every byte, then the high ones."""
    return torch.cat([packed & 15, packed >> 4], 1)


def _bits(packed: Tensor, width: int) -> Tensor:
    """Return the lowest ``width`` bits of every byte, then the next ones, and so on: ``[blocks, 8 / width, bytes]``."""
    shifts = torch.arange(0, 8, width, dtype=torch.uint8)[:, None]
    return (packed[:, None] >> shifts) & (2**width - 1)


def _fifth_bits(packed: Tensor) -> Tensor:
    """Return the 32 bits of four bytes, each where the fifth bit of a number stands."""
    shifts = torch.arange(8, dtype=torch.uint8)
    return (((packed[:, :, None] >> shifts) & 1) << 4).flatten(1)


def _q4_0(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * (_halves(blocks[:, 2:]).float() - 8)


def _q4_1(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * _halves(blocks[:, 4:]).float() + _half(blocks, 2)


def _q5_0(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * ((_halves(blocks[:, 6:]) | _fifth_bits(blocks[:, 2:6])).float() - 16)


def _q5_1(blocks: Tensor) -> Tensor:
    steps = _halves(blocks[:, 8:]) | _fifth_bits(blocks[:, 4:8])
    return _half(blocks, 0) * steps.float() + _half(blocks, 2)


def _q8_0(blocks: Tensor) -> Tensor:
    return _half(blocks, 0) * blocks[:, 2:].contiguous().view(torch.int8).float()


def _sixes(packed: Tensor) -> tuple[Tensor, Tensor]:
    """Return eight scales and eight least numbers of six bits each, from the twelve bytes of Q4_K and Q5_K."""
    low, middle, high = packed.split(4, 1)
    scale = torch.cat([low & 63, (high & 15) | ((low >> 2) & 48)], 1)
    least = torch.cat([middle & 63, (high >> 4) | ((middle >> 2) & 48)], 1)
    return scale, least


def _scaled(blocks: Tensor, scale: Tensor, least: Tensor, steps: Tensor) -> Tensor:
    """Return ``d scale q - dmin least`` for the parts of each block."""
    d, dmin = _half(blocks, 0), _half(blocks, 2)
    return ((d * scale.float())[..., None] * steps.float() - (dmin * least.float())[..., None]).flatten(1)


def _q4_k(blocks: Tensor) -> Tensor:
    steps = _bits(blocks[:, 16:].unflatten(1, (4, 32)).flatten(0, 1), 4).unflatten(0, (-1, 4)).flatten(1, 2)
    return _scaled(blocks, *_sixes(blocks[:, 4:16]), steps)


def _q5_k(blocks: Tensor) -> Tensor:
    low = _bits(blocks[:, 48:].unflatten(1, (4, 32)).flatten(0, 1), 4).unflatten(0, (-1, 4)).flatten(1, 2)
    steps = low | (_bits(blocks[:, 16:48], 1) << 4)
    return _scaled(blocks, *_sixes(blocks[:, 4:16]), steps)


def _q6_k(blocks: Tensor) -> Tensor:
    low = _bits(blocks[:, :128].unflatten(1, (2, 64)).flatten(0, 1), 4).unflatten(0, (-1, 2)).unflatten(-1, (2, 32))
    high = _bits(blocks[:, 128:192].unflatten(1, (2, 32)).flatten(0, 1), 2).unflatten(0, (-1, 2)).unflatten(2, (2, 2))
    steps = (low | (high.reshape(low.shape) << 4)).float() - 32
    scale = _half(blocks, 208) * blocks[:, 192:208].contiguous().view(torch.int8).float()
    return (scale[..., None] * steps.reshape(len(blocks), 16, 16)).flatten(1)


def _q2_k(blocks: Tensor) -> Tensor:
    d, dmin = _half(blocks, 80), _half(blocks, 82)
    scale, least = blocks[:, :16] & 15, blocks[:, :16] >> 4
    steps = _bits(blocks[:, 16:80].unflatten(1, (2, 32)).flatten(0, 1), 2).reshape(len(blocks), 16, 16)
    return ((d * scale.float())[..., None] * steps.float() - (dmin * least.float())[..., None]).flatten(1)


def _q3_k(blocks: Tensor) -> Tensor:
    low, high = _bits(blocks[:, 96:104], 4).flatten(1), _bits(blocks[:, 104:108], 2).flatten(1)
    scale = _half(blocks, 108) * ((low | (high << 4)).float() - 32)
    steps = _bits(blocks[:, 32:96].unflatten(1, (2, 32)).flatten(0, 1), 2).unflatten(0, (-1, 2)).flatten(1, 2)
    # A number whose bit in the mask is not set is less by four.
    least = (1 - _bits(blocks[:, :32], 1).float()) * 4
    return (scale[..., None] * (steps.float() - least).reshape(len(blocks), 16, 16)).flatten(1)


def _mxfp4(blocks: Tensor) -> Tensor:
    exponent, four = blocks[:, :1].float(), _halves(blocks[:, 1:])
    size = 2 * torch.tensor(FLOAT4)[(four & 7).long()]
    return torch.ldexp(torch.where(four > 7, -size, size), exponent - 128)


FORMULAS: dict[str, Callable[[Tensor], Tensor]] = {
    "Q4_0": _q4_0, "Q4_1": _q4_1, "Q5_0": _q5_0, "Q5_1": _q5_1, "Q8_0": _q8_0,
    "Q2_K": _q2_k, "Q3_K": _q3_k, "Q4_K": _q4_k, "Q5_K": _q5_k, "Q6_K": _q6_k,
    "MXFP4": _mxfp4,
}  # fmt: skip
"""From the bytes of blocks ``[blocks, size]`` to their numbers in float32 ``[blocks, block]``."""


def rounded_to_q8_0(matrix: Float[Tensor, "rows width"]) -> UInt8[Tensor, "rows stored"]:
    """Return a matrix in blocks of Q8_0: ``d = max|w| / 127`` in float16, then ``round(w / d)`` for 32 numbers."""
    blocks = matrix.detach().float().reshape(-1, 32)
    scale = (blocks.abs().amax(1, keepdim=True) / 127).to(torch.float16)
    wide = scale.float()
    steps = torch.where(wide > 0, blocks / wide, 0.0).round().clamp(-128, 127).to(torch.int8)
    return torch.cat([scale.view(torch.uint8), steps.view(torch.uint8)], 1).reshape(len(matrix), -1)
