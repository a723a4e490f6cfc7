"""Weights as whole numbers: eight or four bits each, with one scale an output channel or a group of its inputs."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.models.limits import NUMBER
from orrery.models.model import Model
from orrery.tuning._linear import TransformedLinear, replace_linears
from orrery.tuning._registry import register
from orrery.tuning._transform import Transform
from orrery.tuning._whole_numbers import group_of, rounded

FOUR_BIT_GROUP = 32
"""Inputs that share a scale where four bits are asked for and no group: benchmarks/quantisation.json compares."""


class QuantisedLinear(TransformedLinear):
    """``y = x W^T + b`` with ``W[o, kg + j] = s[o, k] q[o, kg + j]``: a linear whose matrix is stored in whole numbers.

    ``weight`` stays the place of the matrix. With eight bits it is int8 ``[out, in]`` with q from -127 to 127. With
    four it is uint8 ``[out, in / 2]`` with q from -8 to 7: byte ``kg/2 + j`` holds ``q + 8`` of input ``kg + j`` in its
    low half and that of input ``kg + g/2 + j`` in its high half. Beside it stands ``weight_scale`` ``[out, in / g]``.

    Up to 32 rows are multiplied by a compiled kernel that reads the stored numbers once, where numba is installed and
    the model is on a CPU in float32 or less; otherwise the matrix is written out, a part at a time. Both give the same
    numbers but for float32 rounding. Shapes: ``[..., in]`` to ``[..., out]``.
    """

    def __init__(self, linear: nn.Linear, bits: int, group: int) -> None:
        super().__init__(linear)
        whole, scale = rounded(linear.weight.detach(), bits, group)
        self.weight = nn.Parameter(whole, requires_grad=False)
        self.weight_scale = nn.Parameter(scale, requires_grad=False)

    def forward(self, x: Float[Tensor, "*rows in"]) -> Float[Tensor, "*rows out"]:
        """Multiply with the matrix that the whole numbers stand for."""
        return self.times_stored(x)

    def matrix(self) -> Float[Tensor, "out in"]:
        """Return that matrix."""
        return self.stored()


@register
@dataclass(frozen=True, kw_only=True)
class Quantise(Transform):
    """Matrices in int8 or int4, symmetric; the model is for use, and nothing in it learns.

    An adapter over it (``LoRA``) learns. Applied twice, with other targets, it gives parts of a model other bits.

    Attributes:
        targets: patterns of the linears' names, by default all those inside blocks.
        leave: patterns of names that are left as they are, by default routers.
        bits: 8 or 4.
        group: inputs that share a scale, at most; where a width is no multiple of it, the largest part of the width
            that is smaller. By default the whole channel with eight bits, 32 with four.
    """

    kind: ClassVar[str] = "quantise"
    targets: tuple[str, ...] = ("*.blocks.*",)
    leave: tuple[str, ...] = ("*.router.*",)
    bits: int = 8
    group: int | None = None

    def __post_init__(self) -> None:
        """Refuse settings that cannot be meant."""
        super().__post_init__()
        if self.bits not in (4, 8):
            raise UsageError(f"quantise: bits is {self.bits}", "weights have 8 bits or 4")
        if self.group is not None and (self.group == 1 or not 0 <= self.group <= NUMBER):
            raise UsageError(f"quantise: group is {self.group}", f"a group has two inputs or more, up to {NUMBER:,}")

    def apply(self, model: Model, seed: int = 1337) -> Model:
        """Store each target in whole numbers and freeze the model.

        Raises:
            UsageError: a pattern names no linear, or a target is tied, a router's, quantised already, or no plain one.
            UsageError: a target has numbers that are not finite, or a width that cannot be divided into groups.
        """

        def stored(name: str, linear: nn.Linear | TransformedLinear) -> QuantisedLinear:
            if isinstance(linear, QuantisedLinear):
                raise UsageError(f"{name} is in whole numbers already", "take the model that it was made from")
            if isinstance(linear, TransformedLinear) and linear.blocks is not None:
                said = f"{name} is in blocks of {linear.blocks.name} already"
                raise UsageError(said, "orrery import FILE.gguf OUT unpacks them")
            if isinstance(linear, TransformedLinear):
                raise UsageError(f"{name} is no plain linear any more", "merge it first: orrery.tuning.merge(model)")
            if not (linear.weight.is_meta or bool(linear.weight.isfinite().all())):
                raise UsageError(f"{name}.weight has numbers that are not finite", "the model is broken: take another")
            return QuantisedLinear(linear, self.bits, self.group_for(name, linear))

        replace_linears(model, self.targets, self.leave, stored)
        model.requires_grad_(False)
        model.transforms = (*model.transforms, self)
        return model

    def group_for(self, name: str, linear: nn.Linear | TransformedLinear) -> int:
        """Return how many inputs of a linear share a scale.

        Raises:
            UsageError: its width cannot be divided into groups.
        """
        inputs = linear.in_features
        if self.bits == 8 and self.group is None:
            return inputs
        group = group_of(inputs, self.group or FOUR_BIT_GROUP)
        if group is None:
            message = f"{name} has {inputs} inputs, which cannot be divided into groups of an even number"
            raise UsageError(message, f"leave it out: leave=({name!r},), or give it eight bits and no group")
        return group
