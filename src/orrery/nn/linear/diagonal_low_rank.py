"""Linear systems that are diagonal but for a matrix of rank one, discretised with the trapezoidal rule (S4)."""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Complex, Float
from torch import Tensor

from orrery.nn.linear.diagonal import as_complex, as_real
from orrery.nn.linear.linear_system import LinearSystem

FEW = 512
"""Steps up to which moving a row step by step takes less time than the matrices of 1, 2, 4, ... steps."""


@dataclass(frozen=True)
class DiagonalLowRank(LinearSystem):
    """``h' = (diag(a) - p p*) h + b u``, ``y = 2 Re(c h)``: one matrix for F channels that differ in c and in the step.

    With ``s = 2 / dt`` the trapezoidal rule gives ``h_t = (s - A)^-1 ((s + A) h_{t-1} + 2 b u_t)``. The inverse is that
    of a diagonal, corrected by Woodbury's identity, so that a step takes time linear in Z. All numbers have conjugates
    beside them that are not written down, which the products with ``p*`` and c count (Gu, Goel and Re 2022, section 3
    and appendix C). Over many steps the real matrices of a piece are made by doubling, and the kernel of a whole row
    from its values at roots of unity; both in float64, for a product of many steps keeps the rounding of each.
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
    def _exact(self) -> "DiagonalLowRank":
        """The same systems in float64."""
        a, p, b, c = (part.to(torch.complex128) for part in (self.a, self.p, self.b, self.c))
        return DiagonalLowRank(a, p, b, c, self.dt.double())

    @cached_property
    def _matrix(self) -> Float[Tensor, "F E E"]:
        """What a step does to a state, ``2 s (s - A)^-1 - 1``: it turns pairs, and adds a matrix of rank one."""
        exact = self._exact
        s_F1 = 2 / exact.dt[:, None]
        left_FZ = 1 / (s_F1 - exact.a)
        turn_FZ = 2 * s_F1 * left_FZ - 1
        pairs_FZ22 = torch.stack([as_real(turn_FZ[..., None].conj()), as_real(1j * turn_FZ[..., None].conj())], -2)
        turns_FZEZE = torch.einsum("fzij,zy->fziyj", pairs_FZ22, torch.eye(len(self.a)).to(exact.dt))
        out_FZ = 2 * s_F1 * left_FZ * exact.p / (1 + exact._along(left_FZ * exact.p))
        row_FZ = 2 * exact.p * left_FZ.conj()
        return turns_FZEZE.flatten(3).flatten(1, 2) - as_real(out_FZ)[..., None] * as_real(row_FZ)[:, None]

    @cached_property
    def _column(self) -> Float[Tensor, "F E"]:
        """What an input of one leaves in an empty state."""
        empty_1FE = torch.zeros_like(self._exact._row)[None]
        return self._exact.advance(empty_1FE, torch.ones_like(empty_1FE[..., 0]))[0]

    @cached_property
    def _doubled(self) -> list[Float[Tensor, "F E E"]]:
        """The matrices of 1, 2, 4, ... steps, as far as anything has asked."""
        return [self._matrix]

    def _steps(self, doublings: int) -> Float[Tensor, "F E E"]:
        """Return the matrix of ``2 ** doublings`` steps."""
        while len(self._doubled) <= doublings:
            self._doubled.append(self._doubled[-1] @ self._doubled[-1])
        return self._doubled[doublings]

    def _power(self, rows_FNE: Float[Tensor, "F N E"], steps: int) -> Float[Tensor, "F N E"]:
        """Return rows times the matrix of so many steps."""
        for doublings in range(steps.bit_length()):
            if steps >> doublings & 1:
                rows_FNE = rows_FNE @ self._steps(doublings)
        return rows_FNE

    def _row_after(self, steps: int) -> Float[Tensor, "F E"]:
        """Return what is read of a state that so many steps then move: ``C A^n``.

        Few steps are taken one by one, each in time linear in Z; many by doubling.
        """
        exact = self._exact
        if steps > FEW:
            return self._power(exact._row[:, None], steps)[:, 0]
        s_F1 = 2 / exact.dt[:, None]
        left_FZ = 1 / (s_F1 - exact.a)
        turn_FZ, out_FZ = 2 * s_F1 * left_FZ - 1, 2 * s_F1 * left_FZ * exact.p
        back_FZ = 2 * exact.p.conj() * left_FZ / (1 + exact._along(left_FZ * exact.p))
        row_FZ = exact.c
        for _ in range(steps):
            row_FZ = row_FZ * turn_FZ - back_FZ * (row_FZ * out_FZ).sum(-1, keepdim=True).real
        return as_real(2 * row_FZ.conj())

    def marks(self, length: int) -> Float[Tensor, "F E L"]:
        """Double the columns that are known, with the matrix of as many steps, until there are enough."""
        marks_FEL = self._column[..., None]
        for doublings in range((length - 1).bit_length()):
            marks_FEL = torch.cat([marks_FEL, self._steps(doublings) @ marks_FEL], 2)
        return marks_FEL[..., :length].to(self.dt.dtype)

    def echoes(self, length: int) -> Float[Tensor, "F L E"]:
        """Double the rows that are known."""
        echoes_FLE = self._exact._row[:, None] @ self._matrix
        for doublings in range((length - 1).bit_length()):
            echoes_FLE = torch.cat([echoes_FLE, echoes_FLE @ self._steps(doublings)], 1)
        return echoes_FLE[:, :length].to(self.dt.dtype)

    def carry(
        self, h_NFE: Float[Tensor, "N F E"], written_NPFE: Float[Tensor, "N P F E"], size: int
    ) -> Float[Tensor, "N P+1 F E"]:
        """Multiply by the matrix of a piece, one piece after the other."""
        each_FEE = torch.eye(h_NFE.shape[2], device=h_NFE.device, dtype=torch.float64).expand_as(self._matrix)
        power_FEE, states = self._power(each_FEE, size).to(h_NFE.dtype), [h_NFE]
        for written_NFE in written_NPFE.unbind(1):
            states.append(torch.einsum("fde,nfe->nfd", power_FEE, states[-1]) + written_NFE)
        return torch.stack(states, 1)

    def kernel(self, length: int) -> Float[Tensor, "F L"]:
        """Return the kernel from its generating function at the roots of unity (section 3.2, algorithm 1).

        ``sum_t K_t z^t = c' (I - A z)^-1 B`` where ``z^L = 1`` and ``c' = c (I - A^L)``. With ``w = (1 + z) / 2`` and
        ``r = dt / (1 - z - dt w a)`` it is ``c' r b - w (c' r p) (p* r b) / (1 + w p* r p)``: sums of the products of
        r, which is a Cauchy matrix, with four vectors. Nothing is divided by ``1 + z``, which is zero at one of them.
        """
        left_FE = self._exact._row - self._row_after(length)
        c = _both(as_complex(left_FE.to(self.dt.dtype)).conj() / 2)
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
