"""Frozen modules: what a norm, a factor or a matrix does to the parts of its input, at one input."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery import tuning
from orrery.errors import UsageError
from orrery.nn.elementwise import FixedBias, LayerScale, Projection
from orrery.nn.norms import LayerNorm, PlainRMSNorm, RMSNorm
from orrery.nn.residual import Dropout, Identity, NoSkip, Scale
from orrery.nn.stochastic_depth import StochasticDepth
from orrery.tuning import TransformedLinear

Map = Callable[[Tensor], Tensor]


class NotLinearError(UsageError):
    """What a module makes of a sum is no sum of what it makes of the parts."""


def unchanged(x: Tensor) -> Tensor:
    """Return ``x``: the map of a module that changes nothing."""
    return x


@dataclass(frozen=True)
class Frozen:
    """``f(x) = linear(x) + constant`` at one input ``x``: a sum of parts goes through it part by part.

    A norm is such a map once its scale, which is computed from the whole input, is held fixed.

    Attributes:
        linear: what happens to each part.
        constant: what is added besides: the bias of a norm or of a matrix.
    """

    linear: Map = unchanged
    constant: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        """Return what the module makes of the input at which it was frozen."""
        y = self.linear(x)
        return y if self.constant is None else y + self.constant

    def then(self, after: "Frozen") -> "Frozen":
        """Return this map followed by another."""
        if after.linear is unchanged and after.constant is None:
            return self
        constant = after.constant
        if self.constant is not None:
            carried = after.linear(self.constant)
            constant = carried if constant is None else carried + constant
        return Frozen(chained([self.linear, after.linear]), constant)


def pull(linear: Map, direction: Float[Tensor, "*B E"], like: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
    """Return ``A^T d`` for a linear map ``A``: a direction behind it as seen from before it, where ``like`` stands."""
    if linear is unchanged:
        return direction
    with torch.enable_grad():
        x = torch.zeros_like(like, requires_grad=True)
        # As a sum: for a gradient that is given, torch imports its symbolic shapes, which takes half a second.
        (pulled,) = torch.autograd.grad((linear(x) * direction).sum(), x)
    return pulled


def chained(maps: Sequence[Map]) -> Map:
    """Return maps as one, the first first."""
    acting = [one for one in maps if one is not unchanged]

    def through(x: Tensor) -> Tensor:
        for one in acting:
            x = one(x)
        return x

    return through if acting else unchanged


@singledispatch
def frozen(module: nn.Module, x: Float[Tensor, "*B D"]) -> Frozen:
    """Return what a module is at the input ``x``.

    Raises:
        NotLinearError: it is no linear map even with the scales of its norms held fixed.
    """
    name = type(module).__name__
    raise NotLinearError(
        f"{'an' if name[0] in 'AEIOU' else 'a'} {name} acts on a sum as a whole, not on each part",
        "gradients need no sum: trace.gradient_times_input, trace.integrated_gradients",
    )


@frozen.register(Identity)
@frozen.register(Dropout)
@frozen.register(StochasticDepth)
def _nothing(module: nn.Module, x: Tensor) -> Frozen:
    return Frozen()


@frozen.register
def _no_skip(module: NoSkip, x: Tensor) -> Frozen:
    return Frozen(torch.zeros_like)


@frozen.register
def _scale(module: Scale, x: Tensor) -> Frozen:
    return Frozen(module)


@frozen.register
def _layer_norm(module: LayerNorm, x: Tensor) -> Frozen:
    scale = torch.rsqrt(x.var(-1, correction=0, keepdim=True) + module.eps)
    gain = scale if module.weight is None else scale * (_wide(module.weight) + module.offset)
    constant = None if module.bias is None else _wide(module.bias).expand_as(x)
    return Frozen(lambda part: (part - part.mean(-1, keepdim=True)) * gain, constant)


@frozen.register
def _rms_norm(module: RMSNorm, x: Tensor) -> Frozen:
    gain = torch.rsqrt(x.square().mean(-1, keepdim=True) + module.eps) * (_wide(module.weight) + module.offset)
    return Frozen(lambda part: part * gain)


@frozen.register
def _plain_rms_norm(module: PlainRMSNorm, x: Tensor) -> Frozen:
    gain = torch.rsqrt(x.square().mean(-1, keepdim=True) + module.eps)
    return Frozen(lambda part: part * gain)


@frozen.register(nn.Linear)
@frozen.register(TransformedLinear)
def _linear(module: nn.Linear | TransformedLinear, x: Tensor) -> Frozen:
    matrix = matrix_of(module)
    constant = None if module.bias is None else _wide(module.bias).expand(*x.shape[:-1], -1)
    return Frozen(lambda part: part @ matrix.T, constant)


@frozen.register
def _projection(module: Projection, x: Tensor) -> Frozen:
    return frozen(module.linear, x)


@frozen.register
def _fixed_bias(module: FixedBias, x: Tensor) -> Frozen:
    return Frozen(constant=_wide(module.shift).expand_as(x))


@frozen.register
def _layer_scale(module: LayerScale, x: Tensor) -> Frozen:
    gain_D = _wide(module.gain)
    return Frozen(lambda part: part * gain_D)


@frozen.register
def _chain(module: nn.Sequential, x: Tensor) -> Frozen:
    whole = Frozen()
    for part in module:
        step = frozen(part, x)
        whole, x = whole.then(step), step(x)
    return whole


def matrix_of(linear: nn.Module) -> Float[Tensor, "out in"]:
    """Return the matrix of a linear, with what adapters add to it, in float32 at least.

    Raises:
        UsageError: the module has none.
    """
    if isinstance(linear, nn.Linear | TransformedLinear):
        return _wide(tuning.matrix_of(linear))
    raise UsageError(f"a {type(linear).__name__} has no single matrix", "merge its adapters: orrery.tuning.merge")


def _wide(x: Tensor) -> Tensor:
    return x.detach().to(torch.promote_types(x.dtype, torch.float32))
