"""Short numbers with scales and zeros for groups of inputs: GPTQ, AWQ, compressed-tensors and ModelOpt."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Integer, UInt8
from torch import Tensor

from orrery.exchange.reading.rounded.four_bits import four_bit_floats
from orrery.exchange.reading.rounded.method import (
    Method,
    RoundedParts,
    fields,
    floats,
    group_of,
    numbers_in,
    same,
    scaled,
    spread,
    two,
)

GPTQ_BITS = (2, 3, 4, 8)


@dataclass(frozen=True)
class Gptq(Method):
    """``W[o, i] = s[g(i), o] (q[i, o] - z[g(i), o])``, whole numbers in words of 32 bits along the inputs.

    The first version of the format stores the zeros less one. Frantar et al. 2022, section 3.

    Attributes:
        bits: of a whole number, where a matrix has not its own: the width of its zeros says so.
        group: inputs that share a scale; all where it is not positive.
        less: what the stored zeros lack.
    """

    marks: ClassVar[tuple[str, ...]] = (".qweight",)
    ends: ClassVar[tuple[str, ...]] = (".qzeros", ".scales", ".g_idx")
    bits: int
    group: int
    less: int

    def __str__(self) -> str:
        return f"gptq to {self.bits} bits"

    def shape(self, parts: RoundedParts) -> tuple[int, ...]:
        """Return outputs and inputs."""
        words, outputs = two(parts.shape(".qweight"))
        return outputs, numbers_in(words, parts.dtype(".qweight"), self._bits(parts, outputs))

    def dtype(self, parts: RoundedParts) -> torch.dtype:
        """Return that of the scales."""
        return parts.dtype(".scales")

    def unpack(self, parts: RoundedParts) -> Float[Tensor, "out in"]:
        """Return the matrix."""
        outputs, inputs = self.shape(parts)
        bits = self._bits(parts, outputs)
        scale_NE, whole_ED = parts[".scales"], fields(parts[".qweight"].mT, bits)
        zero_NE = (fields(parts[".qzeros"], bits) + self.less) & (2**bits - 1)
        same("zeros", zero_NE.shape, scale_NE.shape)
        same("outputs", zero_NE.shape[-1:], (outputs,))
        group_D = group_of(inputs, len(scale_NE), self.group, parts.if_there(".g_idx"))
        return scaled(whole_ED, zero_NE.mT[:, group_D], scale_NE.mT[:, group_D])

    def _bits(self, parts: RoundedParts, outputs: int) -> int:
        bits, rest = divmod(parts.shape(".qzeros")[-1] * 32, outputs)
        return bits if not rest and bits in GPTQ_BITS else self.bits


@dataclass(frozen=True)
class Awq(Method):
    """``W[o, i] = s[g(i), o] (q[i, o] - z[g(i), o])``, eight outputs to a word, the even ones first.

    Lin et al. 2023; the layout that its program calls GEMM.

    Attributes:
        group: inputs that share a scale; all where it is not positive.
    """

    marks: ClassVar[tuple[str, ...]] = (".qweight",)
    ends: ClassVar[tuple[str, ...]] = (".qzeros", ".scales")
    group: int

    def __str__(self) -> str:
        return "awq to 4 bits"

    def shape(self, parts: RoundedParts) -> tuple[int, ...]:
        """Return outputs and inputs."""
        inputs, words = two(parts.shape(".qweight"))
        return numbers_in(words, parts.dtype(".qweight"), 4), inputs

    def dtype(self, parts: RoundedParts) -> torch.dtype:
        """Return that of the scales."""
        return parts.dtype(".scales")

    def unpack(self, parts: RoundedParts) -> Float[Tensor, "out in"]:
        """Return the matrix."""
        inputs, scale_NE = self.shape(parts)[1], parts[".scales"]
        whole_DE, zero_NE = self._numbers(parts[".qweight"]), self._numbers(parts[".qzeros"])
        same("zeros", zero_NE.shape, scale_NE.shape)
        same("outputs", zero_NE.shape[-1:], whole_DE.shape[-1:])
        group_D = group_of(inputs, len(scale_NE), self.group)
        return scaled(whole_DE, zero_NE[group_D], scale_NE[group_D]).mT.contiguous()

    def _numbers(self, packed: Integer[Tensor, "r words"]) -> UInt8[Tensor, "r numbers"]:
        return fields(packed, 4).unflatten(-1, (-1, 8))[..., [0, 4, 1, 5, 2, 6, 3, 7]].flatten(-2)


@dataclass(frozen=True)
class CompressedTensors(Method):
    """``W = s (q - z)``, q whole numbers or numbers with an exponent, s for a group of inputs or a row.

    Whole numbers of up to eight bits may lie in words of 32, raised by half their range. Numbers of four bits with an
    exponent lie two to a byte, and their scales may have one of their own: compressed-tensors divides, ModelOpt
    multiplies with it.

    Attributes:
        name: the program's.
        blocks: rows and columns that share a scale, as the configuration has them for one matrix or another; of a
            group of inputs one row.
    """

    name: str
    blocks: tuple[tuple[int, int], ...]

    marks: ClassVar[tuple[str, ...]] = (".weight_packed", ".weight_scale")
    ends: ClassVar[tuple[str, ...]] = (
        ".weight", ".weight_shape", ".weight_zero_point", ".weight_g_idx", ".weight_global_scale", ".weight_scale_2",
    )  # fmt: skip
    silent: ClassVar[tuple[str, ...]] = (
        ".input_scale", ".input_zero_point", ".input_global_scale", ".k_scale", ".v_scale", ".q_scale",
    )  # fmt: skip

    def __str__(self) -> str:
        return self.name

    def shape(self, parts: RoundedParts) -> tuple[int, ...]:
        """Return outputs and inputs."""
        stored = ".weight_packed" if ".weight_packed" in parts else ".weight"
        if parts.dtype(stored) == torch.uint8:
            outputs, count = two(parts.shape(stored))
            return outputs, 2 * count
        if stored == ".weight":
            return parts.shape(stored)
        if parts.shape(".weight_shape") != (2,) or parts.dtype(".weight_shape").is_floating_point:
            raise ValueError("weight_shape is the shape of no matrix")
        outputs, inputs = parts[".weight_shape"].tolist()
        same("outputs", parts.shape(".weight_packed")[:1], (outputs,))
        self._bits(parts, inputs)
        return outputs, inputs

    def dtype(self, parts: RoundedParts) -> torch.dtype:
        """Return that of the scales."""
        again = ".weight_global_scale" in parts or ".weight_scale_2" in parts
        return torch.float32 if again else floats(parts.dtype(".weight_scale"))

    def unpack(self, parts: RoundedParts) -> Float[Tensor, "out in"]:
        """Return the matrix."""
        outputs, inputs = two(self.shape(parts))
        numbers, scale = self._numbers(parts, inputs), self._scales(parts)
        if scale.numel() == 1 or scale.dim() < 2:
            scale = scale.reshape(-1, 1).expand(outputs, 1)
        zero = self._zeros(parts, scale)
        given = parts.if_there(".weight_g_idx")
        if given is not None and len(scale) == outputs:
            group_D = group_of(inputs, scale.shape[1], None, given)
            return scaled(numbers, zero[:, group_D], scale[:, group_D])
        block = self._block((outputs, inputs), (len(scale), scale.shape[1]))
        return scaled(numbers, spread(zero, (outputs, inputs), block), spread(scale, (outputs, inputs), block))

    def _scales(self, parts: RoundedParts) -> Tensor:
        scale = parts[".weight_scale"]
        if scale.dtype == torch.uint8:
            scale = scale.view(torch.float8_e8m0fnu)
        if ".weight_global_scale" in parts:
            return scale.float() / parts[".weight_global_scale"].float()
        return scale.float() * parts[".weight_scale_2"].float() if ".weight_scale_2" in parts else scale

    def _block(self, shape: tuple[int, int], scales: tuple[int, int]) -> tuple[int, int]:
        """Return the rows and columns that share a scale: as the configuration says, else equal parts."""
        parts = list(zip(shape, scales, strict=True))
        fit = {
            (min(block[0], shape[0]), min(block[1], shape[1]))
            for block in self.blocks
            if all(-(-size // one) == count for one, (size, count) in zip(block, parts, strict=True))
        }
        if not fit and all(size % count == 0 for size, count in parts):
            return shape[0] // scales[0], shape[1] // scales[1]
        if len(fit) != 1:
            raise ValueError(f"the configuration has no one group for {list(shape)} numbers with {list(scales)} scales")
        return fit.pop()

    def _numbers(self, parts: RoundedParts, inputs: int) -> Tensor:
        if ".weight_packed" not in parts:
            numbers = parts[".weight"]
            if numbers.dtype == torch.uint8:
                return four_bit_floats(numbers)
            if numbers.dtype not in (torch.int8, torch.float8_e4m3fn):
                raise ValueError(f"numbers of {numbers.dtype} are not of eight bits")
            return numbers
        if parts.dtype(".weight_packed") == torch.uint8:
            return four_bit_floats(parts[".weight_packed"])
        bits = self._bits(parts, inputs)
        return fields(parts[".weight_packed"], bits)[:, :inputs].short() - 2 ** (bits - 1)

    def _zeros(self, parts: RoundedParts, scale: Float[Tensor, "r c"]) -> Float[Tensor, "r c"]:
        if ".weight_zero_point" not in parts:
            return torch.zeros(scale.shape)
        zero = parts[".weight_zero_point"]
        if zero.dtype == torch.int32 and ".weight_packed" in parts:
            bits = self._bits(parts, self.shape(parts)[1])
            zero = fields(zero.mT, bits).mT[: len(scale)].short() - 2 ** (bits - 1)
        zero = zero.reshape(-1, 1).expand(scale.shape) if zero.dim() < 2 or zero.numel() == 1 else zero
        same("zeros", zero.shape, scale.shape)
        return zero.float()

    def _bits(self, parts: RoundedParts, inputs: int) -> int:
        words = parts.shape(".weight_packed")[-1]
        for bits in range(1, 9):
            if -(-inputs * bits // 32) == words and parts.dtype(".weight_packed") == torch.int32:
                return bits
        raise ValueError(f"{words} words hold no {inputs} whole numbers of one to eight bits")
