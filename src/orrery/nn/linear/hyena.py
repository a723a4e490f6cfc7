"""Hyena's mixer: a long convolution between two gates, whose kernel is a sum of fading waves."""

import math
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from orrery.nn.cache.contract import State
from orrery.nn.initialisation import Draw
from orrery.nn.linear.diagonal import Diagonal, as_complex
from orrery.nn.linear.long_convolution import LongConvolution
from orrery.nn.linear.short_convolution import ShortConvolution
from orrery.nn.linear.time_steps import TimeSteps
from orrery.nn.mixer import Show
from orrery.nn.spec import ModuleSpec, spec


class Hyena(LongConvolution):
    """``out_t = W (q_t * (sum_s K_s k_{t-s} v_{t-s} + D k_t v_t))``, channel by channel.

    q, k and v are linear in the inputs and pass a short convolution: the operator of order two of Poli et al. 2023. The
    kernel is implicit, as theirs, but a sum of Z fading waves, ``K_t = 2 Re sum_z c_z exp((i w_z - f_z) t)``, and not a
    network of the place: to that form Massaroli et al. 2023, "Laughing Hyena", distil such networks, so that a step
    needs a state of constant size. Here it is trained as it is.
    Shapes: ``[B, L, D]`` to ``[B, L, D]``; the state ``[B, D, 2 Z]`` and the last inputs of the convolution.
    """

    @spec
    class Spec(ModuleSpec):
        """``waves`` of each channel's kernel; places of the short convolution; how fast new waves fade in a token."""

        keeps_state: ClassVar[bool] = True

        waves: int = 16
        length: int = 3
        fading: TimeSteps = TimeSteps(low=1e-3, high=1.0)
        mask: str = "past"

        def build(self, width: int) -> "Hyena":
            """Return the mixer."""
            return Hyena(self, width)

    no_decay: ClassVar[tuple[str, ...]] = ("fading_log", "frequency", "read", "skip")

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.mask, self.fading = spec.mask, spec.fading
        self.state_shape = (width, 2 * spec.waves)
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.convolution = ShortConvolution(3 * width, spec.length)
        self.fading_log = nn.Parameter(torch.full((width, spec.waves), math.log(spec.fading.low)))
        self.frequency = nn.Parameter(torch.empty(width, spec.waves).uniform_(0, math.pi))
        self.read = nn.Parameter(torch.empty(width, 2 * spec.waves).normal_(0, (spec.fading.low / spec.waves) ** 0.5))
        self.skip = nn.Parameter(torch.ones(width))

    def initialise(self, draw: Draw) -> None:
        """Let waves fade at all paces, evenly on a logarithmic scale, and turn at all; a kernel's squares sum to one.

        A wave's squares sum to ``|c|^2 / f``, on average over the angle of c.
        """
        for name in ("q", "k", "v", "out"):
            draw.usual(getattr(self, name), name)
        self.convolution.initialise(draw)
        width, waves = self.frequency.shape
        fading_FZ = self.fading.draw(draw, width * waves).view(width, waves)
        self.fading_log.copy_(fading_FZ.log())
        draw.uniform(self.frequency, math.pi / 2)
        self.frequency.add_(math.pi / 2)
        draw.normal(self.read, 0.5**0.5)
        self.read.mul_((fading_FZ / waves).sqrt().repeat_interleave(2, 1))
        draw.normal(self.skip, 1.0)

    def begin(self, x_BLD: Float[Tensor, "B L D"]) -> State:
        """Return zeros."""
        return (*super().begin(x_BLD), self.convolution.begin(x_BLD))

    def system(self, dtype: torch.dtype) -> Diagonal:
        """Return the waves; an input adds one to each."""
        a_FZ = torch.complex(-self.fading_log.to(dtype).exp(), self.frequency.to(dtype))
        return Diagonal(a_FZ, torch.ones_like(a_FZ), as_complex(self.read.to(dtype)))

    def enter(
        self, x_BLD: Float[Tensor, "B L D"], real_BL: Bool[Tensor, "B L"] | None, carried: State, show: Show
    ) -> tuple[Float[Tensor, "B L F"], Tensor, State]:
        """Return the first gate's product, the second gate, and the last inputs of the convolution."""
        given_BLE = torch.cat([self.q(x_BLD), self.k(x_BLD), self.v(x_BLD)], -1)
        mixed_BLE, after = self.convolution.parallel(given_BLE, real_BL, *carried)
        q_BLD, k_BLD, v_BLD = (
            show(name, part) for name, part in zip(("query", "key", "value"), mixed_BLE.chunk(3, -1), strict=True)
        )
        return k_BLD * v_BLD, q_BLD, (after,)

    def finish(self, y_BLF: Float[Tensor, "B L F"], beside_BLG: Tensor, show: Show) -> Float[Tensor, "B L D"]:
        """Let the second gate decide what passes, and mix the channels."""
        passed_BLD: Tensor = self.out(y_BLF * beside_BLG)
        return passed_BLD
