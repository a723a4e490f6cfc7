"""Mamba-2's mixer: a selective state space with one decay a head, which is a sum of outer products."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.cache.contract import State
from orrery.nn.initialisation import Draw
from orrery.nn.linear.gating import GateThenNorm, Gating
from orrery.nn.linear.matrix_state import wide
from orrery.nn.linear.mixer import MatrixMemory, in_heads, show_decay
from orrery.nn.linear.short_convolution import ShortConvolution
from orrery.nn.linear.time_steps import TimeSteps
from orrery.nn.linear.update import OuterProduct
from orrery.nn.mixer import Show
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, Value, spec


@spec
class BoundedSteps(Value):
    """How step sizes are drawn, and the least and the most that a token can make of one, if there is a most."""

    drawn: TimeSteps = TimeSteps()
    least: float = 0.0
    most: float | None = None


@spec
class Projections(Value):
    """Which projections have a bias, and what stands behind each of the five of the input (Falcon-H1's multipliers)."""

    bias: bool = False
    out_bias: bool = False
    gate: ModuleSpec = Identity.Spec()
    x: ModuleSpec = Identity.Spec()
    write: ModuleSpec = Identity.Spec()
    read: ModuleSpec = Identity.Spec()
    step_size: ModuleSpec = Identity.Spec()


_PIECE = 64
"""Tokens of a piece in the chunked form, a power of two."""


class Mamba2(MatrixMemory):
    """``S_t = exp(dt_t A) S_{t-1} + B_t (dt_t x_t)^T``, ``y_t = W norm((C_t S_t + D x_t) * silu(gate_t))``, by head.

    ``x, B, C = silu(conv(... u_t))`` come from the input ``u_t`` through one short convolution, and
    ``dt_t = softplus(V u_t + b)``, ``gate_t`` without it; ``A < 0`` and D are one number a head, and B and C are shared
    by the heads of a group. With one decay a head the recurrence is attention without a softmax whose scores fade, so
    that a piece of a row is products of matrices (state space duality, Dao and Gu 2024, sections 5 to 7).
    The norm is an RMSNorm over the channels of each group, unless ``gating`` has another order or no norm.
    Shapes: ``[B, L, D]`` to ``[B, L, D]``; the state ``[B, H, C, E]`` with C numbers a channel and E channels a head,
    and the last inputs of the convolution.
    Differs from transformers: step sizes keep to their bounds when decoding too, where it forgets them.
    """

    @spec
    class Spec(ModuleSpec):
        """Heads of ``head_width`` channels with ``state`` numbers each; ``groups`` of heads; places of the convolution.

        ``projections`` says what is peculiar to the matrices, ``gating`` the order of gate and norm.
        """

        keeps_state: ClassVar[bool] = True

        heads: int
        head_width: int
        state: int
        groups: int = 1
        length: int = 4
        projections: Projections = Projections()
        convolution_bias: bool = True
        steps: BoundedSteps = BoundedSteps()
        gating: Gating = GateThenNorm()
        mask: str = "past"

        def build(self, width: int) -> "Mamba2":
            """Return the mixer.

            Raises:
                UsageError: the heads cannot be divided into the groups.
            """
            if self.heads % self.groups:
                raise UsageError(f"{self.heads} heads in {self.groups} groups", "let each group have as many heads")
            return Mamba2(self, width)

    no_decay: ClassVar[tuple[str, ...]] = ("a_log", "skip", "step_bias", "step_size.weight")

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__(spec.mask, _PIECE, (spec.heads, spec.state, spec.head_width))
        self.bounds, self.groups, self.gating = spec.steps, spec.groups, spec.gating
        hidden, shared = spec.heads * spec.head_width, spec.groups * spec.state
        self.parts = [hidden, shared, shared, width]
        sizes = {"gate": hidden, "x": hidden, "write": shared, "read": shared, "step_size": spec.heads}
        self.gate, self.x, self.write, self.read, self.step_size = (
            nn.Linear(width, size, bias=spec.projections.bias) for size in sizes.values()
        )
        slots = {name: getattr(spec.projections, name).build(size) for name, size in sizes.items()}
        self.behind = nn.ModuleDict(slots)
        self.convolution = ShortConvolution(hidden + 2 * shared, spec.length, bias=spec.convolution_bias)
        self.step_bias = nn.Parameter(torch.zeros(spec.heads))
        self.a_log = nn.Parameter(torch.arange(1.0, spec.heads + 1).log())
        self.skip = nn.Parameter(torch.ones(spec.heads))
        self.norm = spec.gating.gain(hidden)
        self.out = nn.Linear(hidden, width, bias=spec.projections.out_bias)

    def initialise(self, draw: Draw) -> None:
        """Draw as the paper's code does: A evenly from -1 to -16, D one, step sizes evenly on a logarithmic scale.

        Matrices are uniform within ``1 / sqrt(inputs)``; W is smaller by the root of the depth.
        """
        for part in (self.gate, self.x, self.write, self.read, self.step_size, self.out):
            draw.even(part)
        self.out.weight.div_(draw.depth**0.5)
        self.convolution.initialise(draw)
        draw.uniform(self.a_log, 7.5)
        self.a_log.copy_((self.a_log + 8.5).log())
        self.step_bias.copy_(self.bounds.drawn.draw_bias(draw, len(self.step_bias)))
        self.skip.fill_(1.0)
        if self.norm is not None:
            self.norm.fill_(1.0)

    def begin(self, x_BLD: Float[Tensor, "B L D"]) -> State:
        """Return an empty state, and no inputs before the first."""
        return (*super().begin(x_BLD), self.convolution.begin(x_BLD))

    def enter(
        self, x_BLD: Float[Tensor, "B L D"], real_BL: Bool[Tensor, "B L"] | None, carried: State
    ) -> tuple[Float[Tensor, "B L E"], State]:
        """Return x, B and C behind the convolution, and the inputs beside them."""
        mixed_BLE, after = self.convolution.parallel(
            torch.cat([self._project(name, x_BLD) for name in ("x", "write", "read")], -1), real_BL, *carried
        )
        return torch.cat([F.silu(mixed_BLE), x_BLD.to(mixed_BLE.dtype)], -1), (after,)

    def update(self, x_BLE: Float[Tensor, "B L E"], show: Show) -> OuterProduct:
        """Return C, B and x as queries, keys and values, and the decay of each head."""
        number = self.shape[0]
        v_BLF, b_BLG, c_BLG, x_BLD = x_BLE.split(self.parts, -1)
        dt_BLH = F.softplus(wide(self._project("step_size", x_BLD)) + self.step_bias)
        dt_BLH = show("step_size", dt_BLH.clamp(self.bounds.least, self.bounds.most))
        decay_BLH = show_decay(-torch.exp(wide(self.a_log)) * dt_BLH, show)
        b_BLHC, c_BLHC = show("written", self._by_head(b_BLG)), show("read", self._by_head(c_BLG))
        v_BLHE = show("value", wide(in_heads(v_BLF, number)) * dt_BLH[..., None])
        return OuterProduct(c_BLHC, b_BLHC, v_BLHE, decay_BLH[..., None])

    def finish(
        self, y_BLHE: Float[Tensor, "B L H E"], x_BLF: Float[Tensor, "B L F"], show: Show
    ) -> Float[Tensor, "B L D"]:
        """Add what skips the state, let the gate decide what passes, and normalise each group where it is asked."""
        v_BLF, _, _, x_BLD = x_BLF.split(self.parts, -1)
        y_BLHE = y_BLHE + self.skip[:, None] * in_heads(v_BLF, len(self.skip))
        gate_BLF = show("gate", F.silu(wide(self._project("gate", x_BLD))))
        passed_BLF = self.gating.of(y_BLHE.flatten(2), gate_BLF, self.norm, self.groups)
        return self.out(passed_BLF.to(x_BLF.dtype))

    def _project(self, name: str, x_BLD: Tensor) -> Tensor:
        """Return one of the five projections of the input, and what its slot makes of it."""
        return self.behind[name](self.get_submodule(name)(x_BLD))

    def _by_head(self, x_BLG: Tensor) -> Tensor:
        """Return what a group shares for each of its heads."""
        x_BLGC = in_heads(x_BLG, self.groups)
        return x_BLGC.repeat_interleave(self.shape[0] // self.groups, dim=2)
