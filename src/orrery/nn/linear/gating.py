"""What a gate and a norm make of the answer of a state: the gate first, the norm first, or the gate alone."""

from abc import abstractmethod

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.linear.mixer import in_heads
from orrery.nn.spec import Value, spec


@spec
class Gating(Value):
    """A rule from an answer and its gate to what the output projection reads."""

    @abstractmethod
    def gain(self, width: int) -> nn.Parameter | None:
        """Return the norm's gain, ones, if there is a norm."""

    @abstractmethod
    def of(self, y_BLF: Tensor, gate_BLF: Tensor, gain_F: Tensor | None, groups: int) -> Tensor:
        """Return what passes, ``[B, L, F]`` as both; the norm is an RMSNorm over the channels of each of ``groups``."""


@spec
class GateThenNorm(Gating):
    """``norm(y * gate)``: Mamba-2's own order."""

    eps: float = 1e-5

    def gain(self, width: int) -> nn.Parameter:
        """Return ones."""
        return nn.Parameter(torch.ones(width))

    def of(self, y_BLF: Tensor, gate_BLF: Tensor, gain_F: Tensor | None, groups: int) -> Tensor:
        """Return the norm of what passes the gate."""
        return _norm(y_BLF * gate_BLF, gain_F, groups, self.eps)


@spec
class NormThenGate(Gating):
    """``norm(y) * gate``: the other order (Falcon-H1's ``mamba_norm_before_gate``)."""

    eps: float = 1e-5

    def gain(self, width: int) -> nn.Parameter:
        """Return ones."""
        return nn.Parameter(torch.ones(width))

    def of(self, y_BLF: Tensor, gate_BLF: Tensor, gain_F: Tensor | None, groups: int) -> Tensor:
        """Return what of the norm passes the gate."""
        return _norm(y_BLF, gain_F, groups, self.eps) * gate_BLF


@spec
class GateAlone(Gating):
    """``y * gate``: no norm (Falcon-H1 as it is published)."""

    def gain(self, width: int) -> None:
        """Return none."""
        return None

    def of(self, y_BLF: Tensor, gate_BLF: Tensor, gain_F: Tensor | None, groups: int) -> Tensor:
        """Return what passes the gate."""
        return y_BLF * gate_BLF


def _norm(x_BLF: Float[Tensor, "B L F"], gain_F: Tensor | None, groups: int, eps: float) -> Float[Tensor, "B L F"]:
    assert gain_F is not None
    x_BLGC = in_heads(x_BLF, groups)
    return F.rms_norm(x_BLGC, x_BLGC.shape[-1:], eps=eps).flatten(2) * gain_F
