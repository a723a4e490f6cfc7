"""Mamba's mixer: a selective state space behind a short convolution, beside a gate."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import ClassVar, TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from orrery.nn.activations import activation
from orrery.nn.cache.contract import State
from orrery.nn.initialisation import Draw
from orrery.nn.linear import scan
from orrery.nn.linear.short_convolution import ShortConvolution
from orrery.nn.linear.time_steps import TimeSteps
from orrery.nn.mixer import Form, Show, StatefulMixer
from orrery.nn.residual import Identity
from orrery.nn.spec import ModuleSpec, spec


class Mamba(StatefulMixer):
    """``h_t = exp(dt_t A) h_{t-1} + dt_t B_t x_t``, ``y_t = W ((C_t h_t + D x_t) * silu(gate_t))``, by channel.

    Here ``x_t = silu(conv(X u_t))`` and ``gate_t = G u_t`` come from the input ``u_t``; from ``x_t`` come the step size
    ``dt_t = softplus(U (V x_t) + b)`` of each channel and ``B_t``, ``C_t``, which all channels share; ``A < 0`` has
    ``state`` numbers a channel. What depends on the token is what it selects to remember (Gu and Dao 2023, section 3).
    Its state is the last inputs of the convolution and h, which has the format of the input but float32 at least.

    ``chunked`` makes decays and states piece by piece and reads them at once; ``parallel`` makes all of them together.
    Shapes: ``[B, L, D]`` to ``[B, L, D]``; h ``[B, F, Z]``.
    Differs from the files of transformers: the projections that they store as one are separate.
    """

    @spec
    class Spec(ModuleSpec):
        """``hidden`` channels with ``state`` numbers each, ``rank`` of the step sizes, ``length`` of the convolution.

        ``norm`` stands behind ``V x``, B and C (Falcon Mamba, Jamba); ``bias`` is that of X, G and W.
        """

        keeps_state: ClassVar[bool] = True

        hidden: int
        rank: int
        state: int = 16
        length: int = 4
        activation: str = "silu"
        bias: bool = False
        convolution_bias: bool = True
        norm: ModuleSpec = Identity.Spec()
        time_steps: TimeSteps = TimeSteps()
        mask: str = "past"

        def build(self, width: int) -> "Mamba":
            """Return the mixer."""
            return Mamba(self, width)

    no_decay: ClassVar[tuple[str, ...]] = ("a_log", "skip", "step_up.weight")

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        hidden, state, rank = spec.hidden, spec.state, spec.rank
        self.mask, self.time_steps = spec.mask, spec.time_steps
        self.activation = activation(spec.activation)
        self.x, self.gate = (nn.Linear(width, hidden, bias=spec.bias) for _ in range(2))
        self.convolution = ShortConvolution(hidden, spec.length, bias=spec.convolution_bias)
        self.step_down, self.step_up = nn.Linear(hidden, rank, bias=False), nn.Linear(rank, hidden)
        self.write, self.read = (nn.Linear(hidden, state, bias=False) for _ in range(2))
        self.step_norm, self.write_norm, self.read_norm = (spec.norm.build(size) for size in (rank, state, state))
        self.a_log = nn.Parameter(torch.arange(1.0, state + 1).log().repeat(hidden, 1))
        self.skip = nn.Parameter(torch.ones(hidden))
        self.out = nn.Linear(hidden, width, bias=spec.bias)

    def initialise(self, draw: Draw) -> None:
        """Draw as the paper's code does: ``A = -1, -2, ...``, D one, step sizes evenly on a logarithmic scale.

        Matrices are uniform within ``1 / sqrt(inputs)``; W is smaller by the root of the depth.
        """
        for part in (self.x, self.gate, self.step_down, self.write, self.read, self.out):
            draw.even(part)
        self.out.weight.div_(draw.depth**0.5)
        self.convolution.initialise(draw)
        hidden, state = self.a_log.shape
        self.a_log.copy_(torch.arange(1.0, state + 1).log().repeat(hidden, 1))
        self.skip.fill_(1.0)
        draw.uniform(self.step_up.weight, self.time_steps.scale * self.step_up.in_features**-0.5)
        self.step_up.bias.copy_(self.time_steps.draw_bias(draw, hidden))

    @property
    def forms(self) -> Mapping[str, Form]:
        """Piece by piece, or all states together."""
        ways: dict[str, Selective] = {"chunked": in_pieces, "parallel": in_rows}
        return {name: self.over_rows(partial(self._rows, way)) for name, way in ways.items()}

    def begin(self, x_BLD: Float[Tensor, "B L D"]) -> State:
        """Return zeros: nothing was read, nothing is remembered."""
        wide = torch.promote_types(x_BLD.dtype, torch.float32)
        return self.convolution.begin(x_BLD), x_BLD.new_zeros(len(x_BLD), *self.a_log.shape, dtype=wide)

    def step(self, x_BD: Float[Tensor, "B D"], state: State, show: Show) -> tuple[Float[Tensor, "B D"], State]:
        """Take one token a row."""
        kept, h_BFZ = state
        mixed_BF, kept = self.convolution.step(self.x(x_BD), kept)
        selected = self._selected(self.activation(mixed_BF), h_BFZ.dtype)
        names = ("mixed", "step_size", "written", "read")
        x_BF, dt_BF, b_BZ, c_BZ = (show(name, part) for name, part in zip(names, selected, strict=True))
        decay_BFZ = torch.exp(dt_BF[..., None] * self._a(h_BFZ.dtype))
        h_BFZ = scan.step(decay_BFZ, (dt_BF * x_BF)[..., None] * b_BZ[:, None], h_BFZ)
        y_BF = (h_BFZ * c_BZ[:, None]).sum(-1)
        return self._said(y_BF, x_BF, show("gate", F.silu(self.gate(x_BD)))), (kept, h_BFZ)

    def _rows(
        self, way: "Selective", x_NTD: Tensor, real_NT: Bool[Tensor, "N T"] | None, state: State
    ) -> tuple[Tensor, State]:
        """Take whole rows; a step of size nothing leaves the state alone, as padding does."""
        kept, h_NFZ = state
        mixed_NTF, kept = self.convolution.parallel(self.x(x_NTD), real_NT, kept)
        x_NTF, dt_NTF, b_NTZ, c_NTZ = self._selected(self.activation(mixed_NTF), h_NFZ.dtype)
        if real_NT is not None:
            dt_NTF = dt_NTF * real_NT[..., None]
        with torch.autocast(x_NTD.device.type, enabled=False):
            y_NTF, h_NFZ = way(self._a(h_NFZ.dtype), (x_NTF, dt_NTF, b_NTZ, c_NTZ), h_NFZ)
        return self._said(y_NTF, x_NTF, F.silu(self.gate(x_NTD))), (kept, h_NFZ)

    def _selected(self, x_F: Float[Tensor, "*B F"], dtype: torch.dtype) -> "Selected":
        """Return x, the step sizes, B and C of tokens, in the format of the states."""
        dt_F = self.step_up(self.step_norm(self.step_down(x_F))).to(dtype)
        b_Z, c_Z = self.write_norm(self.write(x_F)), self.read_norm(self.read(x_F))
        return x_F.to(dtype), F.softplus(dt_F), b_Z.to(dtype), c_Z.to(dtype)

    def _a(self, dtype: torch.dtype) -> Float[Tensor, "F Z"]:
        return -torch.exp(self.a_log.to(dtype))

    def _said(self, y_F: Tensor, x_F: Tensor, gate_F: Tensor) -> Tensor:
        """Return what goes to the stream of what was read."""
        return self.out(((y_F + self.skip * x_F) * gate_F).to(gate_F.dtype))


Selected: TypeAlias = tuple[Tensor, Tensor, Tensor, Tensor]
Selective: TypeAlias = Callable[[Tensor, Selected, Tensor], tuple[Tensor, Tensor]]
"""From A, (x, dt, B, C) of whole rows and the states before to what C reads, ``[N, T, F]``, and the states after."""


def in_rows(a_FZ: Tensor, inputs: Selected, h_NFZ: Tensor) -> tuple[Tensor, Tensor]:
    """Make the decays and states of all tokens together."""
    return _advance(a_FZ, scan.parallel, *inputs, h_NFZ)


def in_pieces(a_FZ: Tensor, inputs: Selected, h_NFZ: Tensor) -> tuple[Tensor, Tensor]:
    """Make the decays and states of a piece, read them and let them go: they never exist for a whole row."""
    return scan.chunked(partial(_advance, a_FZ, scan.all_states), inputs, h_NFZ)


def _advance(
    a_FZ: Float[Tensor, "F Z"],
    states: Callable[[Tensor, Tensor, Tensor], Tensor],
    x_NTF: Float[Tensor, "N T F"],
    dt_NTF: Float[Tensor, "N T F"],
    b_NTZ: Float[Tensor, "N T Z"],
    c_NTZ: Float[Tensor, "N T Z"],
    h_NFZ: Float[Tensor, "N F Z"],
) -> tuple[Float[Tensor, "N T F"], Float[Tensor, "N F Z"]]:
    """Discretise with a zero-order hold (B with Euler's step, as the paper's code), scan and read."""
    decay_NTFZ = torch.exp(dt_NTF[..., None] * a_FZ)
    h_NTFZ = states(decay_NTFZ, (dt_NTF * x_NTF)[..., None] * b_NTZ[:, :, None], h_NFZ)
    return torch.einsum("ntfz,ntz->ntf", h_NTFZ, c_NTZ), h_NTFZ[:, -1]
