"""The short convolution before a state: each channel mixes its last few inputs."""

from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from orrery.nn.initialisation import Draw


class ShortConvolution(nn.Module):
    """``y_t = b + sum_o w_o * x_{t-n+1+o}`` for o = 0 ... n - 1, by channel, with zeros before the beginning.

    It stands in front of the state in H3, Hyena, Mamba and the gated delta rule (there with SiLU after it, which is
    the caller's). Its state is the last ``n - 1`` inputs, ``[B, n - 1, D]``, in the format of the mixer's.
    Shapes: ``[B, L, D]`` unchanged; the weight ``[D, 1, n]``, as torch's grouped ``Conv1d`` has it.
    """

    no_decay: ClassVar[tuple[str, ...]] = ("weight",)

    def __init__(self, width: int, length: int, *, bias: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width, 1, length).uniform_(-(length**-0.5), length**-0.5))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def initialise(self, draw: Draw) -> None:
        """Draw evenly within ``1 / sqrt(n)``, as torch draws a ``Conv1d``; the bias is zero."""
        draw.uniform(self.weight, self.weight.shape[2] ** -0.5)
        if self.bias is not None:
            self.bias.zero_()

    @property
    def kept(self) -> int:
        """The number of inputs in the state."""
        return self.weight.shape[2] - 1

    def begin(self, x: Float[Tensor, "B *rest"]) -> Float[Tensor, "B W D"]:
        """Return zeros, for each row of ``x``, which the mixer reads, and in its format."""
        return x.new_zeros(len(x), self.kept, len(self.weight))

    def step(
        self, x_BD: Float[Tensor, "B D"], before_BWD: Float[Tensor, "B W D"]
    ) -> tuple[Float[Tensor, "B D"], Float[Tensor, "B W D"]]:
        """Mix one input a row with those before it; return the output and the state after it."""
        seen_BWD = torch.cat([before_BWD, x_BD[:, None].to(before_BWD.dtype)], 1)
        y_BD = (seen_BWD * self.weight[:, 0].T).sum(1)
        return (y_BD if self.bias is None else y_BD + self.bias).to(x_BD.dtype), seen_BWD[:, 1:]

    def parallel(
        self,
        x_NTD: Float[Tensor, "N T D"],
        real_NT: Bool[Tensor, "N T"] | None,
        before_NWD: Float[Tensor, "N W D"],
    ) -> tuple[Float[Tensor, "N T D"], Float[Tensor, "N W D"]]:
        """Mix whole rows, which may be padded on the right; the state is that after the last real input."""
        tokens = x_NTD.shape[1]
        seen_NTD = torch.cat([before_NWD, x_NTD.to(before_NWD.dtype)], 1)
        y_NTD = seen_NTD[:, :tokens] * self.weight[:, 0, 0]
        for ahead in range(1, self.kept + 1):
            y_NTD = y_NTD + seen_NTD[:, ahead : ahead + tokens] * self.weight[:, 0, ahead]
        y_NTD = (y_NTD if self.bias is None else y_NTD + self.bias).to(x_NTD.dtype)
        if real_NT is None:
            return y_NTD, seen_NTD[:, tokens:]
        last_NW = real_NT.sum(1)[:, None] + torch.arange(self.kept, device=x_NTD.device)
        return y_NTD, seen_NTD.gather(1, last_NW[..., None].expand(-1, -1, seen_NTD.shape[2]))
