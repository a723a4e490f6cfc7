"""LoRA (Hu et al. 2021): a frozen linear plus a product of two thin matrices that learn."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from orrery.errors import UsageError
from orrery.models.model import Model
from orrery.nn.residual import Dropout
from orrery.tuning._adapter import Adapter
from orrery.tuning._linear import TransformedLinear, replace_linears
from orrery.tuning._registry import register


class AdaptedLinear(TransformedLinear):
    """``y = x W^T + b + (alpha / R) dropout(x) A^T B^T``.

    Beside ``weight`` and ``bias`` it has ``lora_a`` ``[R, in]``, drawn evenly within ``1 / sqrt(in)``, and ``lora_b``
    ``[out, R]``, zero at first, so that the model begins as it was. Hu et al. 2021, section 4.1. Differs from the
    paper, which draws A from a normal distribution; the authors' code and peft draw it so. Shapes: ``[..., in]`` to
    ``[..., out]``.
    """

    no_decay: ClassVar[tuple[str, ...]] = ("lora_a", "lora_b")

    def __init__(self, linear: nn.Linear | TransformedLinear, settings: "LoRA", rng: torch.Generator) -> None:
        super().__init__(linear)
        self.lora_a = nn.Parameter(self.like.new_empty(settings.rank, self.in_features))
        self.lora_b = nn.Parameter(self.like.new_zeros(self.out_features, settings.rank))
        self.scale = settings.alpha / settings.rank
        self.dropout = Dropout.Spec(rate=settings.dropout).build(self.in_features)
        if not self.lora_a.is_meta:
            bound = self.in_features**-0.5
            drawn = torch.empty(self.lora_a.shape).uniform_(-bound, bound, generator=rng)
            self.lora_a.data.copy_(drawn)

    def forward(self, x: Float[Tensor, "*rows in"]) -> Float[Tensor, "*rows out"]:
        """Add the adapter's product to the frozen linear's."""
        added = F.linear(F.linear(self.dropout(x), self.lora_a), self.lora_b)
        return self.times_stored(x) + self.scale * added

    def matrix(self) -> Float[Tensor, "out in"]:
        """Return ``W + (alpha / R) B A``, added up in float32 at least."""
        stored = self.stored()
        wide = torch.promote_types(stored.dtype, torch.float32)
        return (stored.to(wide) + self.scale * (self.lora_b.to(wide) @ self.lora_a.to(wide))).to(stored.dtype)


@register
@dataclass(frozen=True, kw_only=True)
class LoRA(Adapter):
    """Low-rank adapters beside linears; everything else is frozen but what ``learn`` names.

    Attributes:
        rank: of the product that is learned.
        alpha: the product counts ``alpha / rank`` times.
        dropout: on what goes into the adapter.
        targets: patterns of the linears' names, by default queries and values as in the paper.
        leave: patterns of names that are left as they are.
        learn: patterns of parameters of the model that learn too, as a new head must.
    """

    kind: ClassVar[str] = "lora"
    rank: int = 8
    alpha: float | int = 16.0
    dropout: float | int = 0.0
    targets: tuple[str, ...] = ("*.q", "*.v")
    leave: tuple[str, ...] = ()
    learn: tuple[str, ...] = ()

    def add(self, model: Model, seed: int) -> None:
        """Give each target an adapter.

        Raises:
            UsageError: a pattern names no linear, or a target is tied, a router's, or has an adapter.
        """
        rng = torch.Generator().manual_seed(seed)

        def adapted(name: str, linear: nn.Linear | TransformedLinear) -> AdaptedLinear:
            if isinstance(linear, AdaptedLinear):
                raise UsageError(f"{name} has an adapter already", "merge it first: orrery.tuning.merge(model)")
            return AdaptedLinear(linear, self, rng)

        replace_linears(model, self.targets, self.leave, adapted)
