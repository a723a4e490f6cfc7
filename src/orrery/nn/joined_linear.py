"""Linear layers that read one input, such as those of q, k and v, as one product in a training."""

from abc import ABC
from collections.abc import Callable
from typing import Any, ClassVar, TypeGuard, final

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from orrery.nn.attention.sources import CrossSource
from orrery.nn.parting import Grain, Parted

NARROW = 512
"""Outputs of the widest layer that is joined: of wider ones the joined product was no faster, and needs a copy."""


def join_layers(model: nn.Module, device: str) -> None:
    """Have the linear layers of a brick that read one input multiply it at once, where rows have several tokens.

    ``[q, k, v] = x [W_q, W_k, W_v]^T``: the numbers are those of the separate products, up to the rounding of sums in
    another order. On a processor three narrow products take longer than a wide one, and under autocast the input is
    cast once, not three times. Elsewhere nothing is changed: it was not measured there. A pass without a gradient
    computes what one with it does, to the last bit; a single new token takes the layers one by one, for which joining
    their matrices would cost more than it saves.

    Args:
        model: changed in place; its parameters stay as they are.
        device: where it will be called.
    """
    if device != "cpu":
        return
    for brick in model.modules():
        line = getattr(brick, "parting", None)
        if not isinstance(line, Parted) or any(isinstance(child, CrossSource) for child in brick.children()):
            continue
        layers: list[Any] = [brick.get_submodule(name) for name in line.columns]
        if len(layers) > 1 and _alike(layers):
            joined = JoinedLayers(layers)
            for number, layer in enumerate(layers):
                JoinedLinear.take_over(layer, joined, number)


@final
class JoinedLayers:
    """One product for several linear layers: the first that is called computes it, and the others take their part.

    A layer that is called with another input, out of turn, or with one token a row computes its own product.
    """

    def __init__(self, layers: list[Any]) -> None:
        self.layers = layers
        self.product: Callable[[Tensor, Tensor, Tensor | None], Tensor] = F.linear
        self.read: Tensor | None = None
        self.left: tuple[Tensor, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy has: the layers, and nothing of a call that was broken off."""
        return {"layers": self.layers, "product": self.product, "read": None, "left": ()}

    def __call__(self, number: int, x: Tensor) -> Tensor:
        """Return the output of a layer."""
        own = self.layers[number]
        if number == 0 and x.dim() > 2 and x.shape[-2] > 1:
            self.read, self.left = x, self._outputs(x)
        if x is not self.read:
            return self.product(x, own.weight, own.bias)
        output = self.left[number]
        if number == len(self.layers) - 1:  # nothing is held between two calls of the brick
            self.read, self.left = None, ()
        return output

    def _outputs(self, x: Tensor) -> tuple[Tensor, ...]:
        weight = torch.cat([each.weight for each in self.layers])
        bias = None if self.layers[0].bias is None else torch.cat([each.bias for each in self.layers])
        return self.product(x, weight, bias).split([len(each.weight) for each in self.layers], -1)


class PlainLinear(nn.Linear, ABC):
    """``x W^T + b``, and another way to compute it."""


@final
class JoinedLinear(PlainLinear):
    """A linear layer whose output is a part of a joined product. Shapes: ``[..., D]`` to ``[..., E]``."""

    parting: ClassVar = Grain.TOKEN
    joined: JoinedLayers
    number: int

    @classmethod
    def take_over(cls, layer: nn.Linear, joined: JoinedLayers, number: int) -> None:
        """Make a layer one of this kind: a class, unlike a function, is the same for torch's compiler in all blocks."""
        layer.__class__ = cls
        assert isinstance(layer, cls)
        layer.joined, layer.number = joined, number

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's part."""
        return self.joined(self.number, x)


def is_plain(layer: object) -> TypeGuard[nn.Linear]:
    """Say whether a layer is ``x W^T + b`` and nothing more, as those of adapters and of stored numbers are not."""
    return type(layer) is nn.Linear or isinstance(layer, PlainLinear)


def _alike(layers: list[Any]) -> bool:
    """Say whether layers are plain narrow ones of one input that learn, all with a bias or all without."""
    fit = all(is_plain(each) and each.weight.requires_grad and each.out_features <= NARROW for each in layers)
    return fit and len({_kind(each) for each in layers}) == 1


def _kind(layer: Any) -> tuple[Any, ...]:
    learns = (None if p is None else p.requires_grad for p in (layer.weight, layer.bias))
    return (layer.in_features, layer.weight.dtype, *learns)
