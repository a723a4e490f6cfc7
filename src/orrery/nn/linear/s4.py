"""S4: a state space that keeps the whole past as a series of Legendre polynomials, in each channel."""

import math
from typing import ClassVar

import torch
from jaxtyping import Complex, Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.initialisation import Draw
from orrery.nn.linear.diagonal import as_complex, as_real
from orrery.nn.linear.diagonal_low_rank import DiagonalLowRank
from orrery.nn.linear.gated_output import GatedOutput
from orrery.nn.linear.long_convolution import LongConvolution
from orrery.nn.linear.time_steps import TimeSteps
from orrery.nn.mixer import Show
from orrery.nn.spec import ModuleSpec, spec


class S4(LongConvolution):
    """``h' = A h + B u``, ``y = C h + D u``, ``out = (W y') * sigmoid(G y')`` with ``y' = gelu(y)``.

    ``A = V (diag(a) - p p*) V*`` begins as HiPPO-LegS, whose state is the past as a series of Legendre polynomials, and
    is discretised with the trapezoidal rule. In its own basis it is diagonal but for rank one (Gu, Goel and Re 2022,
    "Efficiently modeling long sequences with structured state spaces"). A, p and B are shared by all channels, as in
    the authors' later code; C and the step size are each channel's own.
    Shapes: ``[B, L, D]`` to ``[B, L, D]``; the state ``[B, D, E]``, half of E complex numbers.
    """

    @spec
    class Spec(ModuleSpec):
        """``state`` numbers in each channel, an even number; how steps are drawn."""

        keeps_state: ClassVar[bool] = True

        state: int = 64
        time_steps: TimeSteps = TimeSteps()
        mask: str = "past"

        def build(self, width: int) -> "S4":
            """Return the mixer.

            Raises:
                UsageError: the numbers of a state do not pair.
            """
            if self.state < 2 or self.state % 2:
                raise UsageError(
                    f"a state of {self.state} numbers", "its numbers are conjugate pairs: choose 2, 4, ..."
                )
            return S4(self, width)

    no_decay: ClassVar[tuple[str, ...]] = (
        "fading_log", "frequency", "low_rank", "write", "read", "step_log", "skip",
    )  # fmt: skip

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.mask, self.time_steps = spec.mask, spec.time_steps
        self.state_shape = (width, spec.state)
        self.fading_log, self.frequency = (nn.Parameter(torch.empty(spec.state // 2)) for _ in range(2))
        self.low_rank, self.write = (nn.Parameter(torch.empty(spec.state)) for _ in range(2))
        self.read = nn.Parameter(torch.empty(width, spec.state))
        self.step_log, self.skip = nn.Parameter(torch.empty(width)), nn.Parameter(torch.ones(width))
        self.mix = GatedOutput(width)
        self._begin_matrix()
        nn.init.normal_(self.read, std=0.5**0.5)
        nn.init.constant_(self.step_log, math.log(spec.time_steps.low))

    @torch.no_grad()
    def _begin_matrix(self) -> None:
        a_Z, p_Z, b_Z = hippo(self.state_shape[1])
        self.fading_log.copy_((-a_Z.real).log())
        self.frequency.copy_(a_Z.imag)
        self.low_rank.copy_(as_real(p_Z))
        self.write.copy_(as_real(b_Z))

    def initialise(self, draw: Draw) -> None:
        """Begin with HiPPO-LegS, C and D normal, steps evenly on a logarithmic scale."""
        self._begin_matrix()
        draw.normal(self.read, 0.5**0.5)
        draw.normal(self.skip, 1.0)
        self.step_log.copy_(self.time_steps.draw(draw, len(self.step_log)).log())
        self.mix.initialise(draw)

    def system(self, dtype: torch.dtype) -> DiagonalLowRank:
        """Return the system in the basis in which it is nearly diagonal."""
        a_Z = torch.complex(-self.fading_log.to(dtype).exp(), self.frequency.to(dtype))
        p_Z, b_Z, c_FZ = (as_complex(part.to(dtype)) for part in (self.low_rank, self.write, self.read))
        return DiagonalLowRank(a_Z, p_Z, b_Z, c_FZ, self.step_log.to(dtype).exp())

    def finish(self, y_BLF: Float[Tensor, "B L F"], beside_BLG: Tensor, show: Show) -> Float[Tensor, "B L D"]:
        """Mix the channels."""
        mixed_BLD: Tensor = self.mix(y_BLF, show)
        return mixed_BLD


def hippo(size: int) -> tuple[Complex[Tensor, "Z"], Complex[Tensor, "Z"], Complex[Tensor, "Z"]]:
    """Return a, p and b of HiPPO-LegS in a basis in which ``A + p p*`` is diagonal: one of each pair of conjugates.

    ``A_nk = -sqrt((2 n + 1) (2 k + 1))`` below the diagonal and ``-(n + 1)`` on it, ``B_n = sqrt(2 n + 1)``,
    ``p_n = sqrt(n + 1/2)`` (Gu et al. 2020; 2022, theorem 1). ``A + p p^T`` is minus one half and a skew-symmetric
    matrix. The basis is turned so that b is real.
    """
    root_E = (2 * torch.arange(size, dtype=torch.float64) + 1).sqrt()
    a_EE = -(root_E[:, None] * root_E).tril(-1) - torch.diag(torch.arange(1.0, size + 1, dtype=torch.float64))
    p_E = root_E / 2**0.5
    skew_EE = a_EE + p_E[:, None] * p_E + 0.5 * torch.eye(size, dtype=torch.float64)
    frequency_E, v_EE = torch.linalg.eigh(-1j * skew_EE.to(torch.complex128))
    frequency_Z, v_EZ = frequency_E[size // 2 :], v_EE[:, size // 2 :]
    b_Z, p_Z = (v_EZ.mH @ part.to(torch.complex128) for part in (root_E, p_E))
    turn_Z = b_Z.conj() / b_Z.abs()
    return torch.complex(torch.full_like(frequency_Z, -0.5), frequency_Z), p_Z * turn_Z, b_Z * turn_Z
