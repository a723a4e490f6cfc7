"""Four bits that stand for one of sixteen numbers, scaled by the block: MXFP4, and NF4 and FP4 of bitsandbytes."""

import json
import math
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from orrery.exchange.reading.placement import DTYPES
from orrery.exchange.reading.rounded.method import Method, RoundedParts, same
from orrery.kernels.step.codes import FLOAT4

MOST = 10_000
"""Bytes of a state, which has a few hundred."""


class Mxfp4(Method):
    """``W = v 2^(e - 127)``, v one of sixteen numbers, e for 32 of them; the experts of a mixture in one tensor.

    Open Compute Project 2023, Microscaling formats 1.0, section 5.3.3.
    """

    marks: ClassVar[tuple[str, ...]] = ("_blocks",)
    ends: ClassVar[tuple[str, ...]] = ("_scales",)
    whole: ClassVar[str] = ""

    def __str__(self) -> str:
        return "mxfp4"

    def shape(self, parts: RoundedParts) -> tuple[int, ...]:
        """Return experts, inputs and outputs: the file has the outputs first."""
        *stack, outputs, groups, size = parts.shape("_blocks")
        return *stack, groups * size * 2, outputs

    def dtype(self, parts: RoundedParts) -> torch.dtype:
        """Return bfloat16, which holds each of the numbers."""
        return torch.bfloat16

    def unpack(self, parts: RoundedParts) -> Float[Tensor, "*experts in out"]:
        """Return the matrices."""
        blocks, scales = parts["_blocks"], parts["_scales"]
        same("scales", blocks.shape[:-1], scales.shape)
        if blocks.dtype != torch.uint8 or scales.dtype != torch.uint8:
            raise ValueError(f"numbers of {blocks.dtype} and {scales.dtype} are no bytes")
        matrices_read = torch.empty(self.shape(parts), dtype=torch.bfloat16)
        matrices = (blocks.flatten(0, -4), scales.flatten(0, -3), matrices_read.flatten(0, -3))
        for block_EGN, scale_EG, out_DE in zip(
            *matrices, strict=True
        ):  # one expert at once: its floats take eight times
            out_DE.copy_(self._matrix(block_EGN, scale_EG).mT)
        return matrices_read

    def _matrix(self, block_EGN: UInt8[Tensor, "E G N"], scale_EG: UInt8[Tensor, "E G"]) -> Float[Tensor, "E D"]:
        return (four_bit_floats(block_EGN) * (scale_EG.float() - 127).exp2()[..., None]).flatten(-2)


def four_bit_floats(packed: UInt8[Tensor, "*rows bytes"]) -> Float[Tensor, "*rows numbers"]:
    """Return the numbers of two bits of an exponent and one of a fraction that lie two to a byte, the low one first."""
    values = torch.tensor(FLOAT4)
    return torch.cat([values, -values])[torch.stack([packed & 15, packed >> 4], -1).flatten(-2).int()]


class Bits4(Method):
    """``W = t[q] a``, t a table of sixteen numbers and a the greatest size in a block (Dettmers et al. 2023, QLoRA).

    The sizes may be rounded themselves, to a table of 256 numbers in blocks of their own.
    """

    marks: ClassVar[tuple[str, ...]] = tuple(f".weight.quant_state.bitsandbytes__{kind}" for kind in ("nf4", "fp4"))
    ends: ClassVar[tuple[str, ...]] = (
        ".weight",
        *(f".weight.{part}" for part in ("absmax", "quant_map", "nested_absmax", "nested_quant_map")),
    )

    def __str__(self) -> str:
        return "bitsandbytes to 4 bits"

    def shape(self, parts: RoundedParts) -> tuple[int, ...]:
        """Return what the state of the matrix says."""
        shape = self._state(parts).get("shape")
        if not (isinstance(shape, list) and shape and all(isinstance(size, int) and size > 0 for size in shape)):
            raise ValueError("its state names no shape")
        held = math.prod(parts.shape(".weight")) * parts.dtype(".weight").itemsize
        if -(-math.prod(shape) // 2) != held:
            raise ValueError(f"{held:,} bytes are not two numbers each of {shape}")
        return tuple(shape)

    def dtype(self, parts: RoundedParts) -> torch.dtype:
        """Return what the state of the matrix says."""
        name = self._state(parts).get("dtype")
        if not isinstance(name, str) or name not in DTYPES:
            raise ValueError(f"its numbers would be {str(name)[:40]!r}")
        return DTYPES[name]

    def unpack(self, parts: RoundedParts) -> Tensor:
        """Return the matrix."""
        # Words of any dtype hold the bytes: that of a model trained in parts is that of its other tensors.
        packed = parts[".weight"].flatten().view(torch.uint8)
        shape, state = self.shape(parts), self._state(parts)
        table = parts[".weight.quant_map"].float()
        same("table", table.shape, (16,))
        numbers = table[torch.stack([packed >> 4, packed & 15], -1).flatten().long()][: math.prod(shape)]
        size = _positive(state, "blocksize")
        most = self._sizes(parts, state)
        same("sizes of blocks", most.shape, (-(-len(numbers) // size),))
        return (numbers * most.repeat_interleave(size)[: len(numbers)]).to(self.dtype(parts)).view(shape)

    def _sizes(self, parts: RoundedParts, state: Mapping[str, Any]) -> Float[Tensor, "blocks"]:
        most = parts[".weight.absmax"].flatten()
        if ".weight.nested_absmax" not in parts:
            return most.float()
        size, table = _positive(state, "nested_blocksize"), parts[".weight.nested_quant_map"].float()
        same("table of sizes", table.shape, (256,))
        of_blocks = parts[".weight.nested_absmax"].float().flatten()
        same("blocks of sizes", of_blocks.shape, (-(-len(most) // size),))
        offset = float(state.get("nested_offset") or 0.0)
        return table[most.long()] * of_blocks.repeat_interleave(size)[: len(most)] + offset

    def _state(self, parts: RoundedParts) -> Mapping[str, Any]:
        mark = next(mark for mark in self.marks if mark in parts)
        if math.prod(parts.shape(mark)) > MOST or parts.dtype(mark) != torch.uint8:
            raise ValueError("its state is no short text")
        state = json.loads(bytes(parts[mark].flatten().tolist()))
        if not isinstance(state, dict):
            raise ValueError("its state is no JSON object")
        return state


def _positive(state: Mapping[str, Any], key: str) -> int:
    size = state.get(key)
    if not (isinstance(size, int) and size > 0):
        raise ValueError(f"its state has no {key}")
    return size
