"""A product of low rank beside a matrix, as a part of the architecture (Zamba2's adapters; the form is LoRA's)."""

from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.spec import ModuleSpec, spec


class LowRankSum(nn.Module):
    """``W x + b + B A x`` with A of few rows (Glorioso et al. 2024, fig. 2; the form of Hu et al. 2021).

    Differs from an adapter of ``orrery.tuning``: it belongs to the published model, and is never merged, because the
    matrix W may be that of other depths too. Shapes: ``[..., in]`` to ``[..., out]``.
    """

    @spec
    class Spec(ModuleSpec):
        """The part, and which of its linears have such a product; those of one group share their A."""

        of: ModuleSpec
        groups: tuple[tuple[str, ...], ...]
        rank: int

        def build(self, width: int) -> nn.Module:
            """Return the part with its linears replaced."""
            part = self.of.build(width)
            for names in self.groups:
                down: nn.Linear | None = None
                for name in names:
                    linear = part.get_submodule(name)
                    assert isinstance(linear, nn.Linear)
                    down = down or nn.Linear(linear.in_features, self.rank, bias=False)
                    part.add_module(name, LowRankSum(linear, down))
            return part

        def out_width(self, width: int) -> int:
            """Return the channels that come out of the part."""
            return self.of.out_width(width)

    def __init__(self, linear: nn.Linear, down: nn.Linear) -> None:
        super().__init__()
        self.linear, self.down = linear, down
        self.up = nn.Linear(down.out_features, linear.out_features, bias=False)
        self.in_features, self.out_features = linear.in_features, linear.out_features

    def forward(self, x: Float[Tensor, "*rows in"]) -> Float[Tensor, "*rows out"]:
        """Add both products."""
        return self.linear(x) + self.up(self.down(x))
