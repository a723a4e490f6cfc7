"""The gated delta rule as a mixer: a state that corrects itself, behind a short convolution."""

from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.cache.contract import State
from orrery.nn.initialisation import Draw
from orrery.nn.linear.delta import Delta
from orrery.nn.linear.matrix_state import wide
from orrery.nn.linear.mixer import MatrixMemory, in_heads, show_decay
from orrery.nn.linear.short_convolution import ShortConvolution
from orrery.nn.linear.time_steps import TimeSteps
from orrery.nn.mixer import Show
from orrery.nn.norms import HeadNorm, RMSNorm
from orrery.nn.spec import ModuleSpec, spec

EPSILON = 1e-6
"""What is added to the squared length of a key, as in the authors' implementation."""


class Forgetting(nn.Module):
    """``g = -exp(a) softplus(W x + b)``, the log decay of each head, as in Mamba-2.

    Shapes: ``[B, L, D]`` to ``[B, L, H]``, in float32 at least.
    """

    @spec
    class Spec(ModuleSpec):
        """Heads; of a new one, how small ``exp(a)`` can be, which is at most 16, and the step that ``b`` makes."""

        heads: int
        least: float = 1.0
        steps: TimeSteps = TimeSteps()

        def build(self, width: int) -> "Forgetting":
            """Return the gate."""
            return Forgetting(self, width)

    no_decay: ClassVar[tuple[str, ...]] = ("weight", "bias", "pace")

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        number, self.least, self.steps = spec.heads, spec.least, spec.steps
        self.weight = nn.Parameter(torch.empty(number, width).normal_(0, width**-0.5))
        self.bias, self.pace = nn.Parameter(torch.zeros(number)), nn.Parameter(torch.zeros(number))

    def initialise(self, draw: Draw) -> None:
        """Draw as Mamba-2: ``exp(a)`` evenly up to 16, and a step evenly in its logarithm.

        The step is what ``softplus`` makes of the bias.
        """
        draw.normal(self.weight, draw.std)
        draw.uniform(self.pace, (16 - self.least) / 2)
        self.pace.copy_((self.pace + (16 + self.least) / 2).log())
        self.bias.copy_(self.steps.draw_bias(draw, len(self.bias)))

    def forward(self, x_BLD: Float[Tensor, "B L D"]) -> Float[Tensor, "B L H"]:
        """Return the log decay."""
        step_BLH = F.softplus(wide(F.linear(x_BLD, self.weight)) + self.bias)
        return -self.pace.exp() * step_BLH


class Keeping(nn.Module):
    """``g = 0``: nothing fades (the delta rule: Schlag et al. 2021). Shapes: ``[B, L, D]`` to ``[B, L, H]``."""

    @spec
    class Spec(ModuleSpec):
        """Heads."""

        heads: int

        def build(self, width: int) -> "Keeping":
            """Return the gate that is always open."""
            return Keeping(self.heads)

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def forward(self, x_BLD: Float[Tensor, "B L D"]) -> Float[Tensor, "B L H"]:
        """Return zeros."""
        return wide(x_BLD.new_zeros(*x_BLD.shape[:2], self.number))


class GatedDelta(MatrixMemory):
    """``S_t = (I - b_t k_t k_t^T) a_t S_{t-1} + b_t k_t v_t^T``, ``y_t = W_out (norm(q_t S_t) * silu(W_gate x_t))``.

    Gated DeltaNet (Yang, Kautz and Hatamizadeh 2025, section 3): q, k and v pass a short convolution and SiLU, q and k
    are then brought to length one and q is scaled by ``1 / sqrt(C)``; ``b_t = sigmoid(W_b x_t)`` and ``a_t`` are
    numbers of a head. Several heads may share q and k (Qwen3-Next). Without forgetting (``Keeping``) it is DeltaNet
    (Yang et al. 2024) with an output gate.
    Differs from the paper: a state has the keys' channels first, ``[C, E]``; it is the transpose of theirs.
    Shapes: ``[B, L, D]`` to ``[B, L, D]``; the state ``[B, H, C, E]`` and the convolution's last inputs.
    """

    @spec
    class Spec(ModuleSpec):
        """Channels of a head's keys and values, how it forgets, and the places of the short convolution.

        ``sharing`` heads that stand side by side have one query and one key.
        """

        keeps_state: ClassVar[bool] = True

        heads: int
        key_width: int
        value_width: int
        forget: ModuleSpec
        sharing: int = 1
        places: int = 4
        eps: float = 1e-6
        size: int = 64
        mask: str = "past"

        def build(self, width: int) -> "GatedDelta":
            """Return the mixer.

            Raises:
                UsageError: the heads cannot be divided into such groups.
            """
            if self.heads % self.sharing:
                raise UsageError(f"{self.heads} heads in groups of {self.sharing}", "let each group have as many heads")
            return GatedDelta(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__(spec.mask, spec.size, (spec.heads, spec.key_width, spec.value_width))
        self.sharing, values = spec.sharing, spec.heads * spec.value_width
        keys = spec.heads // spec.sharing * spec.key_width
        self.parts = [keys, keys, values, width]
        self.q, self.k = nn.Linear(width, keys, bias=False), nn.Linear(width, keys, bias=False)
        self.v, self.gate = nn.Linear(width, values, bias=False), nn.Linear(width, values, bias=False)
        self.short = ShortConvolution(2 * keys + values, spec.places, bias=False)
        self.write, self.forget = nn.Linear(width, spec.heads, bias=False), spec.forget.build(width)
        self.norm = HeadNorm.Spec(norm=RMSNorm.Spec(eps=spec.eps), head_width=spec.value_width).build(values)
        self.out = nn.Linear(values, width, bias=False)

    def begin(self, x_BLD: Float[Tensor, "B L D"]) -> State:
        """Return an empty state, and no inputs before the first."""
        return (*super().begin(x_BLD), self.short.begin(x_BLD))

    def enter(
        self, x_BLD: Float[Tensor, "B L D"], real_BL: Bool[Tensor, "B L"] | None, carried: State
    ) -> tuple[Float[Tensor, "B L E"], State]:
        """Return queries, keys and values behind the short convolution, and the inputs beside them."""
        mixed_BLE, after = self.short.parallel(
            torch.cat([self.q(x_BLD), self.k(x_BLD), self.v(x_BLD)], -1), real_BL, *carried
        )
        return torch.cat([F.silu(mixed_BLE), x_BLD.to(mixed_BLE.dtype)], -1), (after,)

    def update(self, x_BLE: Float[Tensor, "B L E"], show: Show) -> Delta:
        """Return queries, keys and values, what each head forgets, and how much of the correction it writes."""
        number, width, _ = self.shape
        q_BLF, k_BLF, v_BLF, x_BLD = x_BLE.split(self.parts, -1)
        q_BLHC, k_BLHC = (self._shared(_unit(in_heads(part, number // self.sharing))) for part in (q_BLF, k_BLF))
        q_BLHC, k_BLHC, v_BLHE = show("query", q_BLHC), show("key", k_BLHC), in_heads(v_BLF, number)
        decay_BLH, share_BLH = show_decay(self.forget(x_BLD), show), torch.sigmoid(wide(self.write(x_BLD)))
        return Delta(q_BLHC * width**-0.5, k_BLHC, show("value", v_BLHE), decay_BLH, show("write_gate", share_BLH))

    def finish(
        self, y_BLHE: Float[Tensor, "B L H E"], x_BLF: Float[Tensor, "B L F"], show: Show
    ) -> Float[Tensor, "B L D"]:
        """Normalise each head and let the gate decide what passes."""
        x_BLD = x_BLF.split(self.parts, -1)[-1]
        return self.out(self.norm(y_BLHE.flatten(2)) * show("output_gate", F.silu(self.gate(x_BLD))))

    def _shared(self, x_BLKC: Tensor) -> Tensor:
        """Return the vector of each head, of which a group has one."""
        return x_BLKC[..., None, :].expand(-1, -1, -1, self.sharing, -1).flatten(2, 3)


def _unit(x_BLHC: Tensor) -> Tensor:
    """Return vectors of length one, the squares summed in float32 at least."""
    x = wide(x_BLHC)
    return (x * torch.rsqrt(x.square().sum(-1, keepdim=True) + EPSILON)).to(x_BLHC.dtype)
