"""Token shift: each token mixed with the one before it, channel by channel (RWKV)."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


def shifted(x_NTD: Float[Tensor, "N T D"], before_ND: Float[Tensor, "N D"]) -> Float[Tensor, "N T D"]:
    """Return what stood one place before each token; before the first stands ``before_ND``."""
    return torch.cat([before_ND[:, None], x_NTD[:, :-1]], 1)


def last_real(x_NTE: Float[Tensor, "N T E"], real_NT: Bool[Tensor, "N T"] | None) -> Float[Tensor, "N E"]:
    """Return what stands at the last real token of each row, which is padded on the right."""
    if real_NT is None:
        return x_NTE[:, -1]
    last_N = (real_NT.sum(1) - 1).clamp(min=0)
    return x_NTE.gather(1, last_N[:, None, None].expand(-1, 1, x_NTE.shape[2]))[:, 0]


class TokenShift(nn.Module):
    """``m * x_t + (1 - m) * x_{t-1}`` with a learned m for each channel (Peng et al. 2023, section 3.1).

    Shapes: ``[..., D]`` twice to ``[..., D]``.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mix = nn.Parameter(torch.full((width,), 0.5))

    def forward(self, x: Float[Tensor, "*B D"], before: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """Mix each token with the one before it."""
        return self.mix * x + (1 - self.mix) * before

    @torch.no_grad()
    def draw(self, power: float, more: float = 0.0) -> None:
        """Begin as RWKV does: channel i of D takes ``(i / D)^power + more`` of the token itself."""
        places_D = torch.arange(len(self.mix), dtype=self.mix.dtype, device=self.mix.device)
        self.mix.copy_((places_D / len(self.mix)) ** power + more)
