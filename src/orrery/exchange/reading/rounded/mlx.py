"""Matrices of Apple's MLX: whole numbers with a scale and a bias for a group, or floats of four or eight bits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from orrery.exchange.reading.rounded.four_bits import four_bit_floats
from orrery.exchange.reading.rounded.method import Method, RoundedParts, fields, same

AFFINE = "affine"
_FORMS: Mapping[str, tuple[int, int]] = {AFFINE: (64, 4), "mxfp4": (32, 4), "nvfp4": (16, 4), "mxfp8": (32, 8)}
"""The modes, each with the group and the bits that are meant where nothing is said; all but the first have no other."""
_BITS, _GROUPS = (2, 3, 4, 5, 6, 8), (32, 64, 128)
_LARGEST = 448 * 6
"""The largest scale times the largest number of NVFP4, to which the scale of a whole tensor is relative."""


@dataclass(frozen=True)
class Packing:
    """How one matrix is stored.

    Attributes:
        mode: what its numbers are.
        bits: of a number.
        group: numbers of a row that share a scale.
    """

    mode: str
    bits: int
    group: int

    def __str__(self) -> str:
        return f"{self.bits} bits" if self.mode == AFFINE else self.mode


@dataclass(frozen=True)
class Mlx(Method):
    """``W = s q + b`` for a group of a row, q whole numbers in words of 32 bits; or ``W = s v``, v short floats.

    Attributes:
        usual: how a matrix is stored of which nothing is said.
        others: what is said of single modules, by their names.
    """

    marks: ClassVar[tuple[str, ...]] = (".scales",)
    ends: ClassVar[tuple[str, ...]] = (".weight", ".biases", ".global_scale")
    usual: Packing
    others: Mapping[str, Packing]

    def __str__(self) -> str:
        kinds = sorted({str(packing) for packing in (self.usual, *self.others.values())})
        return f"mlx to {', '.join(kinds)}"

    def shape(self, parts: RoundedParts) -> tuple[int, ...]:
        """Return that of the words, with as many numbers as they hold."""
        return self._shape(parts, self._packing(parts))

    def dtype(self, parts: RoundedParts) -> torch.dtype:
        """Return that of the scales; bfloat16, which holds the short floats, where these are bytes."""
        own = parts.dtype(".scales")
        return own if own.is_floating_point else torch.bfloat16

    def unpack(self, parts: RoundedParts) -> Float[Tensor, "*experts out in"]:
        """Return the matrix, or those of all experts."""
        packing = self._packing(parts)
        shape = self._shape(parts, packing)
        matrices = torch.empty(shape, dtype=self.dtype(parts))
        given = (parts[".weight"], parts[".scales"], self._biases(parts, packing))
        packed = [tensor.reshape(-1, shape[-2], tensor.shape[-1]) for tensor in given]
        whole = parts.if_there(".global_scale")
        wide = torch.ones(()) if whole is None else whole.float() / _LARGEST
        scales = wide.expand(shape[:-2]).reshape(-1)
        # One expert at once: its floats take eight times what is stored.
        for matrix, scale, *one in zip(matrices.view(-1, *shape[-2:]), scales, *packed, strict=True):
            matrix.copy_(_matrix(packing, *one) * scale)
        return matrices

    def _shape(self, parts: RoundedParts, packing: Packing) -> tuple[int, ...]:
        *outer, words = parts.shape(".weight")
        if parts.dtype(".weight") != torch.uint32 or not outer or not words or words * 32 % packing.bits:
            raise ValueError(f"{parts.dtype('.weight')} of {[*outer, words]} hold no numbers of {packing}")
        inputs = words * 32 // packing.bits
        same("scales", parts.shape(".scales"), (*outer, inputs // packing.group))
        return *outer, inputs

    def _biases(self, parts: RoundedParts, packing: Packing) -> Tensor:
        scales = parts[".scales"]
        if packing.mode != AFFINE:
            if scales.dtype != torch.uint8:
                raise ValueError(f"scales of {scales.dtype} are no bytes")
            return scales
        biases = parts[".biases"]
        same("biases", biases.shape, scales.shape)
        return biases

    def _packing(self, parts: RoundedParts) -> Packing:
        """Return how a matrix is stored: as is said of it, else as its tensors say, with the usual group."""
        name = parts.names[".scales"].removesuffix(".scales")
        said = self.others.get(name) or self.others.get(f"language_model.{name}")
        if said is not None:
            return said
        # What a group takes: bits times numbers.
        taken, rest = divmod(parts.shape(".weight")[-1] * 32, parts.shape(".scales")[-1] or 1)
        if ".biases" not in parts:
            return next(
                (Packing(m, b, g) for m, (g, b) in _FORMS.items() if m != AFFINE and b * g == taken), self.usual
            )
        usual = self.usual if self.usual.mode == AFFINE else Packing(AFFINE, *reversed(_FORMS[AFFINE]))
        bits = taken // usual.group
        return usual if rest or bits * usual.group != taken else Packing(AFFINE, bits, usual.group)


def _matrix(packing: Packing, weight_EW: Tensor, scale_EG: Tensor, bias_EG: Tensor) -> Float[Tensor, "out in"]:
    """Return one matrix, in float32."""
    if packing.mode == AFFINE:
        number_EGN = fields(weight_EW, packing.bits).unflatten(-1, (-1, packing.group))
        return (number_EGN * scale_EG.float()[..., None] + bias_EG.float()[..., None]).flatten(-2)
    byte_EB: UInt8[Tensor, "out bytes"] = weight_EW.view(torch.uint8)
    number_ED = four_bit_floats(byte_EB) if packing.bits == 4 else byte_EB.view(torch.float8_e4m3fn).float()
    kind = torch.float8_e4m3fn if packing.mode == "nvfp4" else torch.float8_e8m0fnu
    scale = scale_EG.view(kind).float()
    return (number_ED.unflatten(-1, (-1, packing.group)) * scale[..., None]).flatten(-2)


def mlx_of(said: Mapping[str, Any]) -> Mlx | None:
    """Return the method that a configuration describes; None where a part of it is not read."""
    usual = _said(said) if {"bits", "group_size"} <= said.keys() else None
    others = {name: _said(value) for name, value in said.items() if isinstance(value, Mapping)}
    known = {name: packing for name, packing in others.items() if packing is not None}
    return Mlx(usual, known) if usual is not None and len(known) == len(others) else None


def _said(settings: Mapping[str, Any]) -> Packing | None:
    mode = settings.get("mode", AFFINE)
    if not isinstance(mode, str) or mode not in _FORMS:
        return None
    usual = dict(zip(("group_size", "bits"), _FORMS[mode], strict=True))
    group, bits = (usual[key] if settings.get(key) is None else settings[key] for key in usual)
    fits = (bits in _BITS and group in _GROUPS) if mode == AFFINE else (group, bits) == _FORMS[mode]
    return Packing(mode, int(bits), int(group)) if fits else None
