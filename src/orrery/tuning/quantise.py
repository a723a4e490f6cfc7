"""Weights as whole numbers: eight bits a number, one scale an output channel."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int8
from torch import Tensor, nn
from torch.nn import functional as F

from orrery.errors import UsageError
from orrery.models.model import Model
from orrery.tuning._linear import TransformedLinear, replace_linears
from orrery.tuning._registry import register
from orrery.tuning._transform import Transform

LARGEST = 127
"""Of eight bits; -128 is left out, so that every number has its negative."""


class QuantisedLinear(TransformedLinear):
    """``y = x (s q)^T + b``: a linear whose matrix is stored in int8, with one scale for each output channel.

    ``weight`` stays the place of the matrix, now int8 ``[out, in]``; beside it stands ``weight_scale`` ``[out, 1]``.
    The numbers are those of the dequantised matrix exactly, which is made anew in each call: this saves memory, not
    time. Shapes: ``[..., in]`` to ``[..., out]``.
    """

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__(linear)
        whole, scale = quantised(linear.weight.detach())
        self.weight = nn.Parameter(whole, requires_grad=False)
        self.weight_scale = nn.Parameter(scale, requires_grad=False)

    def forward(self, x: Float[Tensor, "*rows in"]) -> Float[Tensor, "*rows out"]:
        """Multiply with the dequantised matrix."""
        return F.linear(x, self.stored(), self.bias)

    def matrix(self) -> Float[Tensor, "out in"]:
        """Return the dequantised matrix."""
        return self.stored()


def quantised(weight: Float[Tensor, "out in"]) -> tuple[Int8[Tensor, "out in"], Float[Tensor, "out 1"]]:
    """Return ``round(w / s)`` and ``s = max|w| / 127`` of each row; a row of zeros has the scale one.

    A number is then off by half a scale at most.
    """
    if weight.is_meta:
        return torch.empty_like(weight, dtype=torch.int8), weight.new_empty(len(weight), 1)
    peak = weight.abs().amax(1, keepdim=True)
    scale = torch.where(peak > 0, peak / LARGEST, torch.ones_like(peak))
    return (weight / scale).round().clamp(-LARGEST, LARGEST).to(torch.int8), scale


@register
@dataclass(frozen=True, kw_only=True)
class Quantise(Transform):
    """Matrices in int8, symmetric, one scale an output channel; the model is for use, and nothing in it learns.

    An adapter over it (``LoRA``) learns.

    Attributes:
        targets: patterns of the linears' names, by default all those inside blocks.
        leave: patterns of names that are left as they are, by default routers.
    """

    kind: ClassVar[str] = "quantise"
    targets: tuple[str, ...] = ("*.blocks.*",)
    leave: tuple[str, ...] = ("*.router.*",)

    def apply(self, model: Model, seed: int = 1337) -> Model:
        """Store each target in int8 and freeze the model.

        Raises:
            UsageError: a pattern names no linear, or a target is tied, a router's, or no plain linear.
            UsageError: a target has numbers that are not finite.
        """

        def stored(name: str, linear: nn.Linear | TransformedLinear) -> QuantisedLinear:
            if isinstance(linear, TransformedLinear):
                raise UsageError(f"{name} is no plain linear any more", "merge it first: orrery.tuning.merge(model)")
            if not (linear.weight.is_meta or bool(linear.weight.isfinite().all())):
                raise UsageError(f"{name}.weight has numbers that are not finite", "the model is broken: take another")
            return QuantisedLinear(linear)

        replace_linears(model, self.targets, self.leave, stored)
        model.requires_grad_(False)
        model.transforms = (*model.transforms, self)
        return model
