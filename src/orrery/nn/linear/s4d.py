"""S4D: a diagonal state space in each channel, which remembers the past as fading waves."""

import math
from collections.abc import Callable
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.initialisation import Draw
from orrery.nn.linear.diagonal import Diagonal, as_complex
from orrery.nn.linear.gated_output import GatedOutput
from orrery.nn.linear.long_convolution import LongConvolution
from orrery.nn.linear.time_steps import TimeSteps
from orrery.nn.mixer import Show
from orrery.nn.spec import ModuleSpec, spec

WAVES: dict[str, Callable[[Tensor, int], Tensor]] = {
    "linear": lambda n_Z, waves: math.pi * n_Z,
    "inverse": lambda n_Z, waves: 2 * waves / math.pi * (2 * waves / (2 * n_Z + 1) - 1),
}
"""Frequencies of new waves n = 0, 1, ...: S4D-Lin, whose kernels are those of a Fourier series, and S4D-Inv, which
are near to the frequencies of HiPPO-LegS (Gu et al. 2022b, section 4.2; their N is twice the number of waves)."""


class S4D(LongConvolution):
    """``h' = A h + u``, ``y = 2 Re(C h) + D u``, ``out = (W y') * sigmoid(G y')`` with ``y' = gelu(y)``.

    In each channel A is diagonal with Z complex numbers of a negative real part, discretised with a zero-order hold:
    ``h_t = exp(dt A) h_{t-1} + (exp(dt A) - 1) / A u_t``. Gu, Gupta, Goel and Re 2022b, "On the parameterization and
    initialization of diagonal state space models". B is one, for only its product with C counts (their section 3.3);
    each wave stands for its conjugate too. Shapes: ``[B, L, D]`` to ``[B, L, D]``; the state ``[B, D, 2 Z]``.
    """

    @spec
    class Spec(ModuleSpec):
        """``waves`` in each channel, how their frequencies begin (``WAVES``), and how steps are drawn."""

        keeps_state: ClassVar[bool] = True

        waves: int = 32
        frequencies: str = "linear"
        time_steps: TimeSteps = TimeSteps()
        mask: str = "past"

        def build(self, width: int) -> "S4D":
            """Return the mixer.

            Raises:
                UsageError: frequencies of no known kind.
            """
            if self.frequencies not in WAVES:
                raise UsageError(f"no frequencies {self.frequencies!r}", f"there are: {', '.join(WAVES)}")
            return S4D(self, width)

    no_decay: ClassVar[tuple[str, ...]] = ("fading_log", "frequency", "read", "step_log", "skip")

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.mask, self.time_steps, self.frequencies = spec.mask, spec.time_steps, WAVES[spec.frequencies]
        self.state_shape = (width, 2 * spec.waves)
        self.fading_log = nn.Parameter(torch.full((width, spec.waves), math.log(0.5)))
        self.frequency = nn.Parameter(torch.empty(width, spec.waves))
        self.read = nn.Parameter(torch.empty(width, 2 * spec.waves))
        self.step_log = nn.Parameter(torch.empty(width))
        self.skip = nn.Parameter(torch.ones(width))
        self.mix = GatedOutput(width)
        self._begin_frequencies()
        nn.init.normal_(self.read, std=0.5**0.5)
        nn.init.constant_(self.step_log, math.log(spec.time_steps.low))

    @torch.no_grad()
    def _begin_frequencies(self) -> None:
        waves = self.frequency.shape[1]
        self.frequency.copy_(self.frequencies(torch.arange(waves), waves).expand_as(self.frequency))

    def initialise(self, draw: Draw) -> None:
        """Draw as the paper: all waves fade by half a unit of time, C normal, steps evenly on a logarithmic scale."""
        self.fading_log.fill_(math.log(0.5))
        self._begin_frequencies()
        draw.normal(self.read, 0.5**0.5)
        draw.normal(self.skip, 1.0)
        self.step_log.copy_(self.time_steps.draw(draw, len(self.step_log)).log())
        self.mix.initialise(draw)

    def system(self, dtype: torch.dtype) -> Diagonal:
        """Hold each input for a step."""
        a_FZ = torch.complex(-self.fading_log.to(dtype).exp(), self.frequency.to(dtype))
        a_dt_FZ = a_FZ * self.step_log.to(dtype).exp()[:, None]
        return Diagonal(a_dt_FZ, torch.expm1(a_dt_FZ) / a_FZ, as_complex(self.read.to(dtype)))

    def finish(self, y_BLF: Float[Tensor, "B L F"], beside_BLG: Tensor, show: Show) -> Float[Tensor, "B L D"]:
        """Mix the channels."""
        mixed_BLD: Tensor = self.mix(y_BLF, show)
        return mixed_BLD
