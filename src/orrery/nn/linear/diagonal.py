"""Linear systems that are diagonal: every number of a state is complex, fades and turns by itself."""

from dataclasses import dataclass

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from orrery.nn.linear import scan
from orrery.nn.linear.linear_system import PIECE, LinearSystem


@dataclass(frozen=True)
class Diagonal(LinearSystem):
    """``h_t = exp(a) h_{t-1} + b u_t``, ``y_t = 2 Re(c h_t)``, with Z complex numbers a channel.

    Attributes:
        a: the logarithm of what is left after a step and by which angle it has turned.
        b: what an input adds.
        c: what is read.
    """

    a: Complex[Tensor, "F Z"]
    b: Complex[Tensor, "F Z"]
    c: Complex[Tensor, "F Z"]

    def advance(self, h_NFE: Float[Tensor, "N F E"], u_NF: Float[Tensor, "N F"]) -> Float[Tensor, "N F E"]:
        """Fade, turn and add."""
        return as_real(scan.step(self.a.exp(), self.b * u_NF[..., None], as_complex(h_NFE)))

    def read(self, h_NFE: Float[Tensor, "N F E"]) -> Float[Tensor, "N F"]:
        """Read all numbers, and their conjugates."""
        return 2 * (self.c * as_complex(h_NFE)).sum(-1).real

    def kernel(self, length: int) -> Float[Tensor, "F L"]:
        """Return the sum of the exponentials; their powers are products, those of pieces and those inside a piece."""
        size = min(PIECE, length)
        far_FPZ = self.b[:, None] * self._power(range(0, length, size)).mT
        near_FZT = self.c[..., None] * self._power(range(size))
        return 2 * (far_FPZ @ near_FZT).real.flatten(1)[:, :length]

    def marks(self, length: int) -> Float[Tensor, "F E L"]:
        """Return the powers of what is left, times b."""
        return as_real((self.b[..., None] * self._power(range(length))).mT).mT

    def echoes(self, length: int) -> Float[Tensor, "F L E"]:
        """Return the powers times c, so that a product of real numbers is ``2 Re(c exp(a (t + 1)) h)``."""
        return as_real(2 * (self.c[..., None] * self._power(range(1, length + 1))).mT.conj())

    def carry(
        self, h_NFE: Float[Tensor, "N F E"], written_NPFE: Float[Tensor, "N P F E"], size: int
    ) -> Float[Tensor, "N P+1 F E"]:
        """Scan over the pieces: each fades by the power of its tokens."""
        first = as_complex(h_NFE)
        states = scan.all_states((size * self.a).exp()[None, None], as_complex(written_NPFE), first)
        return as_real(torch.cat([first[:, None], states], 1))

    def _power(self, times: range) -> Complex[Tensor, "F Z L"]:
        times_L = torch.arange(times.start, times.stop, times.step, device=self.a.device, dtype=self.a.real.dtype)
        return (self.a[..., None] * times_L).exp()


def as_complex(x_E: Float[Tensor, "*B E"]) -> Complex[Tensor, "*B Z"]:
    """Return pairs of numbers as complex ones."""
    return torch.view_as_complex(x_E.unflatten(-1, (-1, 2)).contiguous())


def as_real(x_Z: Complex[Tensor, "*B Z"]) -> Float[Tensor, "*B E"]:
    """Return complex numbers as pairs."""
    return torch.view_as_real(x_Z.resolve_conj()).flatten(-2)
