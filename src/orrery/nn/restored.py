"""Hidden patches brought back: one learned vector in the place of each."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from orrery.nn.spec import ModuleSpec, spec


class RestoredPatches(nn.Module):
    """``y_i = x_j`` where patch i was kept as the j-th, and the learned ``m`` where it was hidden (He et al. 2022, 3).

    Shapes: kept ``[B, N2, D]`` and their numbers ``[B, N2]`` to ``[B, N, D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """It has no settings."""

        def build(self, width: int) -> "RestoredPatches":
            """Return the one vector."""
            return RestoredPatches(width)

    def __init__(self, width: int) -> None:
        super().__init__()
        self.hidden = nn.Embedding(1, width)

    def forward(
        self, kept_BND: Float[Tensor, "B N2 D"], numbers_BN: Int[Tensor, "B N2"], patches: int
    ) -> Float[Tensor, "B N D"]:
        """Put what was kept into its place among all patches."""
        hidden_BND = self.hidden.weight.to(kept_BND.dtype).expand(len(kept_BND), patches, -1)
        return hidden_BND.scatter(1, numbers_BN[..., None].expand_as(kept_BND), kept_BND)
