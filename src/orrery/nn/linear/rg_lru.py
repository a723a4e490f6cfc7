"""The recurrent block of Griffin: a gated linear recurrence behind a short convolution, beside a gate."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.activations import activation
from orrery.nn.cache.contract import State
from orrery.nn.initialisation import Draw
from orrery.nn.linear import scan
from orrery.nn.linear.block_diagonal import BlockDiagonal
from orrery.nn.linear.matrix_state import wide
from orrery.nn.linear.mixer import show_decay
from orrery.nn.linear.short_convolution import ShortConvolution
from orrery.nn.mixer import Form, Show, StatefulMixer, unseen
from orrery.nn.spec import ModuleSpec, spec

SHARPNESS = 8.0
"""The constant c of the paper, by which a gate of one half keeps as much as the parameter says to the fourth power."""
STEEPEST = 1000.0
"""The most that the slope of the square root counts for, as in the authors' code: without past it has no end."""


class RGLRU(StatefulMixer):
    """``h_t = a_t h_{t-1} + sqrt(1 - a_t^2) (i_t * x_t)``, ``y_t = W (act(G u_t) * h_t)``, by channel.

    Real-gated linear recurrent unit in Griffin's block (De et al. 2024, section 2.4): ``x_t = conv(X u_t)`` from the
    input ``u_t``; ``a_t = exp(-8 r_t softplus(p))``, where the gates r and i are sigmoids of block-diagonal maps of
    ``x_t``. The first token of a document has no past to leave room for: ``h_1 = i_1 * x_1``.
    Its state is the last inputs of the convolution, h ``[B, F]`` in float32 at least, and whether there was a token.
    Shapes: ``[B, L, D]`` to ``[B, L, D]``.
    Differs from transformers: the first token is the one before which none was seen, whatever its position.
    """

    @spec
    class Spec(ModuleSpec):
        """``hidden`` channels, the ``parts`` of the gates' maps, places of the convolution, and the activation."""

        keeps_state: ClassVar[bool] = True

        hidden: int
        parts: int
        length: int = 4
        activation: str = "gelu_tanh"
        mask: str = "past"

        def build(self, width: int) -> "RGLRU":
            """Return the mixer.

            Raises:
                UsageError: the channels cannot be divided into the parts.
            """
            if self.hidden % self.parts:
                raise UsageError(f"{self.hidden} channels in {self.parts} parts", "let each part have as many channels")
            return RGLRU(self, width)

    no_decay: ClassVar[tuple[str, ...]] = ("pace",)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.mask, self.activation = spec.mask, activation(spec.activation)
        self.x, self.gate = nn.Linear(width, spec.hidden), nn.Linear(width, spec.hidden)
        self.convolution = ShortConvolution(spec.hidden, spec.length)
        self.write, self.forget = BlockDiagonal(spec.parts, spec.hidden), BlockDiagonal(spec.parts, spec.hidden)
        self.pace = nn.Parameter(torch.zeros(spec.hidden))
        self.out = nn.Linear(spec.hidden, width)

    def initialise(self, draw: Draw) -> None:
        """Draw as the authors do: p such that a whole gate leaves between 0.9 and 0.999, evenly in its square.

        Variances are one over the inputs, a hundredth of that in the convolution and the gates, and ``2 / depth`` of it
        in W; biases are zero.
        """
        for part, variance in ((self.x, 1.0), (self.gate, 1.0), (self.out, 2 / draw.depth)):
            draw.normal(part.weight, (variance / part.in_features) ** 0.5)
            part.bias.zero_()
        for gate in (self.write, self.forget):
            draw.normal(gate.weight, (0.01 / gate.weight.shape[1]) ** 0.5)
            gate.bias.zero_()
        self.convolution.initialise(draw)
        draw.normal(self.convolution.weight, (0.01 / self.convolution.weight.shape[2]) ** 0.5)
        low, high = 0.9**2, 0.999**2
        draw.uniform(self.pace, (high - low) / 2)
        squares_F = self.pace + (high + low) / 2
        self.pace.copy_(torch.expm1(-squares_F.log() / 2).log())

    @property
    def forms(self) -> Mapping[str, Form]:
        """Piece by piece, or all states together."""
        ways: dict[str, Way] = {"chunked": in_pieces, "parallel": in_rows}
        return {name: self.over_rows(partial(self._rows, way)) for name, way in ways.items()}

    def begin(self, x_BLD: Float[Tensor, "B L D"]) -> State:
        """Return zeros: nothing was read, nothing is remembered, and no token was before."""
        nothing_BF = wide(x_BLD.new_zeros(len(x_BLD), len(self.pace)))
        return self.convolution.begin(x_BLD), nothing_BF, nothing_BF[:, :1]

    def step(self, x_BD: Float[Tensor, "B D"], state: State, show: Show) -> tuple[Float[Tensor, "B D"], State]:
        """Take one token a row."""
        kept, h_BF, seen_B1 = state
        mixed_BF, kept = self.convolution.step(self.x(x_BD), kept)
        decay_BF, written_BF = self._gated(mixed_BF, seen_B1, show)
        h_BF = scan.step(decay_BF.exp(), written_BF, h_BF)
        return self._said(x_BD, h_BF, show), (kept, h_BF, torch.ones_like(seen_B1))

    def _rows(
        self, way: "Way", x_NTD: Tensor, real_NT: Bool[Tensor, "N T"] | None, state: State
    ) -> tuple[Tensor, State]:
        """Take whole rows; padding, which stands on the right, fades nothing and writes nothing."""
        kept, h_NF, seen_N1 = state
        mixed_NTF, kept = self.convolution.parallel(self.x(x_NTD), real_NT, kept)
        seen_NT1 = torch.cat([seen_N1[:, None], seen_N1.new_ones(*x_NTD.shape[:2], 1)[:, 1:]], 1)
        decay_NTF, written_NTF = self._gated(mixed_NTF, seen_NT1, unseen)
        seen_N1 = torch.ones_like(seen_N1)
        if real_NT is not None:
            decay_NTF, written_NTF = (part * real_NT[..., None] for part in (decay_NTF, written_NTF))
            seen_N1 = torch.where(real_NT.any(1, keepdim=True), seen_N1, state[2])
        h_NTF, h_NF = way(decay_NTF.exp(), written_NTF, h_NF)
        return self._said(x_NTD, h_NTF, unseen), (kept, h_NF, seen_N1)

    def _gated(self, x_F: Tensor, seen_1: Tensor, show: Show) -> tuple[Tensor, Tensor]:
        """Return log decays and what is written, in the format of the states."""
        x_F = show("value", x_F)
        rate_F, write_F = (torch.sigmoid(wide(gate(x_F))) for gate in (self.forget, self.write))
        decay_F = show_decay(-SHARPNESS * rate_F * F.softplus(wide(self.pace)), show)
        room_F = torch.where(seen_1 > 0, _root(-torch.expm1(2 * decay_F)), 1.0)
        return decay_F, room_F * show("write_gate", write_F) * wide(x_F)

    def _said(self, x_D: Tensor, h_F: Tensor, show: Show) -> Tensor:
        """Return what goes to the stream of what is remembered."""
        gate_F = show("output_gate", self.activation(self.gate(x_D)))
        return self.out(h_F.to(gate_F.dtype) * gate_F)


Way: TypeAlias = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""From what is kept and what is written at every token, ``[N, T, F]``, and the states before to all and the last."""


def in_rows(a_NTF: Tensor, written_NTF: Tensor, h_NF: Tensor) -> tuple[Tensor, Tensor]:
    """Make the states of all tokens together."""
    h_NTF = scan.parallel(a_NTF, written_NTF, h_NF)
    return h_NTF, h_NTF[:, -1]


def in_pieces(a_NTF: Tensor, written_NTF: Tensor, h_NF: Tensor) -> tuple[Tensor, Tensor]:
    """Make the states of one piece after the other."""
    return scan.chunked(_piece, (a_NTF, written_NTF), h_NF)


def _piece(a_NTF: Tensor, written_NTF: Tensor, h_NF: Tensor) -> tuple[Tensor, Tensor]:
    h_NTF = scan.all_states(a_NTF, written_NTF, h_NF)
    return h_NTF, h_NTF[:, -1]


def _root(x: Tensor) -> Tensor:
    """Return the square root, whose slope near zero is bounded."""
    least = (2 * STEEPEST) ** -2
    fixed = x.detach()
    near_zero = fixed.clamp(min=0).sqrt() + STEEPEST * (x - fixed)
    return torch.where(fixed > least, x.clamp(min=least).sqrt(), near_zero)
