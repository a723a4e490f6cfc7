"""Linear systems that are diagonal but for a matrix of rank one, discretised with the trapezoidal rule (S4)."""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from orrery.nn.linear.diagonal import as_complex, as_real
from orrery.nn.linear.linear_system import LinearSystem


@dataclass(frozen=True)
class DiagonalLowRank(LinearSystem):
    """``h' = (diag(a) - p p*) h + b u``, ``y = 2 Re(c h)``: one matrix for F channels that differ in c and in the step.

    With ``s = 2 / dt`` the trapezoidal rule gives ``h_t = (s - A)^-1 ((s + A) h_{t-1} + 2 b u_t)``. The inverse is that
    of a diagonal, corrected by Woodbury's identity, so that a step takes time linear in Z. All numbers have conjugates
    beside them that are not written down, which the products with ``p*`` and c count (Gu, Goel and Re 2022, section 3
    and appendix C). Over many steps the real matrices of a piece are made by doubling, and the kernel of a whole row
    from its values at roots of unity.
    """

    a: Complex[Tensor, "Z"]
    p: Complex[Tensor, "Z"]
    b: Complex[Tensor, "Z"]
    c: Complex[Tensor, "F Z"]
    dt: Float[Tensor, "F"]

    def advance(self, h_NFE: Float[Tensor, "N F E"], u_NF: Float[Tensor, "N F"]) -> Float[Tensor, "N F E"]:
        """Take one step of the trapezoidal rule."""
        h_NFZ, s_F1 = as_complex(h_NFE), 2 / self.dt[:, None]
        left_FZ = 1 / (s_F1 - self.a)
        moved_NFZ = (s_F1 + self.a) * h_NFZ - self.p * self._along(h_NFZ) + 2 * self.b * u_NF[..., None]
        moved_NFZ = left_FZ * moved_NFZ
        corrected = self._along(moved_NFZ) / (1 + self._along(left_FZ * self.p))
        return as_real(moved_NFZ - left_FZ * self.p * corrected)

    def _along(self, h_Z: Complex[Tensor, "*B Z"]) -> Float[Tensor, "*B 1"]:
        """Return ``p* h``, the conjugates with it."""
        return 2 * (self.p.conj() * h_Z).sum(-1, keepdim=True).real

    def read(self, h_NFE: Float[Tensor, "N F E"]) -> Float[Tensor, "N F"]:
        """Read all numbers, and their conjugates."""
        return (self._row * h_NFE).sum(-1)

    @property
    def _row(self) -> Float[Tensor, "F E"]:
        """What is read, as a row that is multiplied with real numbers."""
        return as_real(2 * self.c.conj())

    @cached_property
    def _matrix(self) -> Float[Tensor, "F E E"]:
        """What a step does to each number of a state."""
        channels, size = self._row.shape
        each_EFE = torch.eye(size, dtype=self.dt.dtype, device=self.dt.device)[:, None].expand(-1, channels, -1)
        return self.advance(each_EFE, self.dt.new_zeros(size, channels)).permute(1, 2, 0)

    @cached_property
    def _column(self) -> Float[Tensor, "F E"]:
        """What an input of one leaves in an empty state."""
        empty = torch.zeros_like(self._row)
        return self.advance(empty[None], torch.ones_like(self.dt)[None])[0]

    def marks(self, length: int) -> Float[Tensor, "F E L"]:
        """Double the columns that are known, with the matrix of as many steps, until there are enough."""
        marks_FEL, power_FEE = self._column[..., None], self._matrix
        while marks_FEL.shape[2] < length:
            marks_FEL = torch.cat([marks_FEL, power_FEE @ marks_FEL], 2)
            power_FEE = power_FEE @ power_FEE
        return marks_FEL[..., :length]

    def echoes(self, length: int) -> Float[Tensor, "F L E"]:
        """Double the rows that are known."""
        power_FEE = self._matrix
        echoes_FLE = self._row[:, None] @ power_FEE
        while echoes_FLE.shape[1] < length:
            echoes_FLE = torch.cat([echoes_FLE, echoes_FLE @ power_FEE], 1)
            power_FEE = power_FEE @ power_FEE
        return echoes_FLE[:, :length]

    def carry(
        self, h_NFE: Float[Tensor, "N F E"], written_NPFE: Float[Tensor, "N P F E"], size: int
    ) -> Float[Tensor, "N P+1 F E"]:
        """Multiply by the matrix of a piece, one piece after the other."""
        power_FEE, states = torch.linalg.matrix_power(self._matrix, size), [h_NFE]
        for written_NFE in written_NPFE.unbind(1):
            states.append(torch.einsum("fde,nfe->nfd", power_FEE, states[-1]) + written_NFE)
        return torch.stack(states, 1)

    def kernel(self, length: int) -> Float[Tensor, "F L"]:
        """Return the kernel from its generating function at the roots of unity (section 3.2, algorithm 1).

        ``sum_t K_t z^t = c' (I - A z)^-1 B`` where ``z^L = 1`` and ``c' = c (I - A^L)``. With ``w = (1 + z) / 2`` and
        ``r = dt / (1 - z - dt w a)`` it is ``c' r b - w (c' r p) (p* r b) / (1 + w p* r p)``: sums of the products of
        r, which is a Cauchy matrix, with four vectors. Nothing is divided by ``1 + z``, which is zero at one of them.
        """
        ends_FE = (self._row[:, None] @ torch.linalg.matrix_power(self._matrix, length))[:, 0]
        c = _both(as_complex(self._row - ends_FE).conj() / 2)
        a, p, b = _both(self.a), _both(self.p), _both(self.b)
        at_L = torch.arange(length // 2 + 1, device=self.dt.device, dtype=self.dt.dtype)
        z_L1 = torch.exp(torch.complex(torch.zeros_like(at_L), -2 * math.pi / length * at_L))[:, None]
        w_L1, dt_F11 = (1 + z_L1) / 2, self.dt[:, None, None]
        r_FLZ = dt_F11 / (1 - z_L1 - dt_F11 * w_L1 * a)
        shared = [(p.conj() * part).expand_as(c) for part in (b, p)]
        cb, cp, pb, pp = (r_FLZ @ torch.stack([c * b, c * p, *shared], -1)).unbind(-1)
        w_L = w_L1[:, 0]
        return torch.fft.irfft(cb - w_L * cp * pb / (1 + w_L * pp), length)


def _both(x_Z: Complex[Tensor, "*B Z"]) -> Complex[Tensor, "*B Z2"]:
    """Return numbers and their conjugates."""
    return torch.cat([x_Z, x_Z.conj()], -1)
