"""Convolution over neighbours, as a branch of a block (DeBERTa v2's xlarge models)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.activations import activation
from orrery.nn.context import Context
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, spec


class Convolution(nn.Module):
    """``act(dropout(b + sum_o W_o x_{i + o}))`` over the neighbours ``|o| <= length // 2`` that token i may see.

    The mask decides what is a neighbour: padding and other documents count as zeros, like places beyond the row.
    Shapes: ``[B, L, D]`` unchanged; the windows ``[B, L, D, length]``.
    """

    role: str = ""

    @spec
    class Spec(ModuleSpec):
        """``length`` neighbours, the token among them; ``groups`` of channels that do not mix."""

        length: int
        groups: int = 1
        activation: str = "tanh"
        dropout: ModuleSpec = Identity.Spec()
        mask: str = "full"

        def build(self, width: int) -> "Convolution":
            """Return the convolution.

            Raises:
                UsageError: an even length, which has no middle.
            """
            if self.length % 2 == 0:
                raise UsageError(f"a convolution of length {self.length} has no middle", "choose an odd length")
            return Convolution(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(width, width, spec.length, groups=spec.groups)
        self.dropout = spec.dropout.build(width)
        self.activation = activation(spec.activation)
        self.mask, self.reach = spec.mask, spec.length // 2

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Mix each token with its neighbours."""
        tokens = x_BLD.shape[1]
        offsets_W = torch.arange(-self.reach, self.reach + 1, device=x_BLD.device)
        near_LW = torch.arange(tokens, device=x_BLD.device)[:, None] + offsets_W
        inside_LW, near_LW = (near_LW >= 0) & (near_LW < tokens), near_LW.clamp(0, tokens - 1)
        shown_BLL = ctx.masks[self.mask].matrix(tokens, tokens, x_BLD.device)[:, 0]
        shown_BLW = shown_BLL.gather(-1, near_LW.expand(len(shown_BLL), -1, -1)) & inside_LW
        windows_BLDW = (x_BLD[:, near_LW] * shown_BLW[..., None]).mT
        mixed_BLD = self.conv(windows_BLDW.flatten(0, 1)).view_as(x_BLD)
        return self.activation(self.dropout(mixed_BLD))
