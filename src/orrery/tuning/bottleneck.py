"""Bottleneck adapters (Houlsby et al. 2019; Pfeiffer et al. 2021): a small network behind a frozen sublayer."""

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.models.model import Model
from orrery.nn.activations import activation
from orrery.nn.residual import Residual
from orrery.tuning._adapter import Adapter
from orrery.tuning._registry import register


class BottleneckNetwork(nn.Module):
    """``h + W_up f(W_down h + b_down) + b_up`` of what a sublayer is about to add, behind the sublayer's dropout.

    ``down.weight`` ``[R, D]`` is drawn evenly within ``1 / sqrt(D)``; ``up`` is zero at first, so that the model begins
    as it was. Houlsby et al. 2019, section 2.1. Differs from the paper, which draws both near zero.
    Shapes: ``[B, L, D]`` unchanged.
    """

    def __init__(
        self, dropout: nn.Module, settings: "Bottleneck", width: int, like: Tensor, rng: torch.Generator
    ) -> None:
        super().__init__()
        self.dropout = dropout
        self.down = nn.Linear(width, settings.size, device="meta")
        self.up = nn.Linear(settings.size, width, device="meta")
        for linear in (self.down, self.up):
            for name, parameter in list(linear.named_parameters()):
                setattr(linear, name, nn.Parameter(like.new_zeros(parameter.shape)))
        self.activation: Callable[[Tensor], Tensor] = activation(settings.activation)
        if not like.is_meta:
            drawn = torch.empty(self.down.weight.shape).uniform_(-(width**-0.5), width**-0.5, generator=rng)
            self.down.weight.data.copy_(drawn)

    def forward(self, x_BLD: Float[Tensor, "B L D"]) -> Float[Tensor, "B L D"]:
        """Add what the network makes of the sublayer's output."""
        x_BLD = self.dropout(x_BLD)
        return x_BLD + self.up(self.activation(self.down(x_BLD)))


@register
@dataclass(frozen=True, kw_only=True)
class Bottleneck(Adapter):
    """A small network behind each sublayer; everything else is frozen but what ``learn`` names.

    Attributes:
        size: of the bottleneck.
        activation: the nonlinearity, by its name in ``nn/activations.py``.
        targets: patterns of the sublayers' names: all by default (Houlsby et al. 2019); ``*.feed_forward`` is the place
            of Pfeiffer et al. 2021. Branches side by side are one sublayer, ``parallel``.
        learn: patterns of parameters of the model that learn too, as a new head must.
    """

    kind: ClassVar[str] = "bottleneck"
    merges: ClassVar[bool] = False
    size: int = 64
    activation: str = "relu"
    targets: tuple[str, ...] = ("*.blocks.*",)
    learn: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse settings that cannot be meant."""
        super().__post_init__()
        activation(self.activation)

    def add(self, model: Model, seed: int) -> None:
        """Put a network behind each target.

        Raises:
            UsageError: a pattern names no sublayer, or one that has a network.
        """
        rng = torch.Generator().manual_seed(seed)
        for residual in self._targeted(model):
            like = next(p for p in (*residual.parameters(), *model.parameters()) if p.is_floating_point())
            network = BottleneckNetwork(residual.dropout, self, residual.width, like, rng)
            residual.dropout = network.train(residual.training)

    def _targeted(self, model: nn.Module) -> list[Residual]:
        """Return the sublayers, each once though it may stand at several depths."""
        known = [(name, m) for name, m in model.named_modules(remove_duplicate=False) if isinstance(m, Residual)]
        for pattern in self.targets:
            if not any(fnmatchcase(name, pattern) for name, _ in known):
                near = ", ".join(name for name, _ in known[:3]) or "this architecture has none"
                raise UsageError(f"no sublayer is called {pattern!r}", f"names look like {near}")
        meant = [(name, m) for name, m in known if any(fnmatchcase(name, pattern) for pattern in self.targets)]
        if not meant:
            raise UsageError("the targets name no sublayer", "give patterns of names, '*.feed_forward' for example")
        for name, residual in meant:
            if isinstance(residual.dropout, BottleneckNetwork):
                raise UsageError(f"{name} has an adapter already", "apply the transform once")
        return list({id(residual): residual for _, residual in meant}.values())
