"""Retention: each head forgets at a pace of its own, and its state turns as rotary positions do."""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.linear import matrix_state
from orrery.nn.linear.mixer import MatrixMemory, in_heads
from orrery.nn.linear.update import Update
from orrery.nn.mixer import Show
from orrery.nn.spec import ModuleSpec, spec

BASE = 10_000.0
"""Of the rates of rotation, as in rotary positions."""


@dataclass(frozen=True)
class Turning(Update):
    """``S_t = g R^{-1} S_{t-1} + k_t v_t^T``, ``y_t = q_t S_t``, where R turns each pair of channels of a key.

    A key that is n tokens old has been turned n times against the query: so their product sees the distance alone, as
    with rotary positions, and no token needs to know its own place. The forms over rows turn queries and keys by their
    places in the call instead, and turn the state back at its end. Shapes: q and k ``[B, L, H, C]``,
    v ``[B, L, H, E]``, log decay ``[B, L, H, 1]``; ``length_B`` counts the real tokens.
    """

    q: Tensor
    k: Tensor
    v: Tensor
    decay: Tensor
    length_B: Int[Tensor, "B"]

    def only(self, real_BL: Bool[Tensor, "B L"]) -> "Turning":
        """Let the other tokens write nothing, and nothing fade or turn meanwhile."""
        real_BL11 = real_BL[..., None, None]
        return replace(self, k=self.k * real_BL11, decay=self.decay * real_BL11, length_B=real_BL.sum(1))

    def step(self, state_BHCE: Float[Tensor, "B H C E"]) -> tuple[Float[Tensor, "B L H E"], Float[Tensor, "B H C E"]]:
        """Turn, fade, write, read."""
        q, k, v, decay = (x[:, 0] for x in (self.q, self.k, self.v, self.decay))
        y_BHE, after = matrix_state.step(q, k, v, decay, turned_state(state_BHCE, self.length_B))
        return y_BHE[:, None], after

    def parallel(
        self, state_BHCE: Float[Tensor, "B H C E"]
    ) -> tuple[Float[Tensor, "B L H E"], Float[Tensor, "B H C E"]]:
        """Take all pairs of tokens at once."""
        y_BLHE, after = matrix_state.parallel(*self._turned(state_BHCE.dtype), self.v, self.decay, state_BHCE)
        return y_BLHE, turned_state(after, self.length_B)

    def chunked(
        self, state_BHCE: Float[Tensor, "B H C E"], size: int
    ) -> tuple[Float[Tensor, "B L H E"], Float[Tensor, "B H C E"]]:
        """Take pieces of ``size`` tokens."""
        y_BLHE, after = matrix_state.chunked(*self._turned(state_BHCE.dtype), self.v, self.decay, state_BHCE, size)
        return y_BLHE, turned_state(after, self.length_B)

    def _turned(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return queries and keys turned by their places, the first of them 1: the state is at 0."""
        place_L = torch.arange(1, self.q.shape[1] + 1, device=self.q.device)
        cosine_LR, sine_LR = angles(place_L, self.q.shape[-1], dtype)
        cosine_L1R, sine_L1R = cosine_LR[:, None], sine_LR[:, None]
        return _turn(self.q, cosine_L1R, sine_L1R), _turn(self.k, cosine_L1R, sine_L1R)


def angles(
    place_L: Int[Tensor, "L"], width: int, dtype: torch.dtype
) -> tuple[Float[Tensor, "L R"], Float[Tensor, "L R"]]:
    """Return cosine and sine of the angles by which each pair of so many channels turns, computed in float64."""
    pair_R = torch.arange(0, width, 2, device=place_L.device, dtype=torch.float64)
    angle_LR = place_L[:, None] * BASE ** -(pair_R / width)
    return angle_LR.cos().to(dtype), angle_LR.sin().to(dtype)


def turned_state(state_BHCE: Float[Tensor, "B H C E"], back_B: Int[Tensor, "B"]) -> Float[Tensor, "B H C E"]:
    """Return a state whose keys are turned back by so many places, a number for each row."""
    cosine_BR, sine_BR = angles(-back_B, state_BHCE.shape[2], state_BHCE.dtype)
    return _turn(state_BHCE.mT, cosine_BR[:, None, None], sine_BR[:, None, None]).mT


def _turn(x_C: Tensor, cosine_R: Tensor, sine_R: Tensor) -> Tensor:
    """Turn each channel of the first half with its fellow of the second."""
    a_R, b_R = x_C.chunk(2, -1)
    return torch.cat([a_R * cosine_R - b_R * sine_R, b_R * cosine_R + a_R * sine_R], -1)


class Retention(MatrixMemory):
    """``y_t = W_out (norm(q_t S_t) * silu(W_gate x_t))``, ``S_t = g_h R^{-1} S_{t-1} + k_t v_t^T`` (Sun et al. 2023).

    Multi-scale retention of RetNet (section 2.2): ``g_h = 1 - 2^(-5 - h)`` for heads h = 0, 1, ..., the key scaled by
    ``1 / sqrt(C)``, a norm of each head without gain (GroupNorm). Differs from the paper: the rotation is that of
    rotary positions, xPos without its scaling, as the authors' implementation has it, and rows of the decay matrix are
    not normalised, which the norm makes the same but for its epsilon.
    Shapes: ``[B, L, D]`` to ``[B, L, D]``; the state ``[B, H, C, E]``.
    """

    @spec
    class Spec(ModuleSpec):
        """Channels of a head's keys, which pair, and of its values; tokens of a piece in the chunked form."""

        keeps_state: ClassVar[bool] = True

        heads: int
        key_width: int
        value_width: int
        eps: float = 1e-6
        size: int = 64
        mask: str = "past"

        def build(self, width: int) -> "Retention":
            """Return the mixer.

            Raises:
                UsageError: the channels of a key do not pair.
            """
            if self.key_width % 2:
                raise UsageError(f"{self.key_width} channels of a key turn: an odd number", "they turn in pairs")
            return Retention(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__(spec.mask, spec.size, (spec.heads, spec.key_width, spec.value_width))
        self.eps = spec.eps
        keys, values = spec.heads * spec.key_width, spec.heads * spec.value_width
        self.q, self.k = nn.Linear(width, keys, bias=False), nn.Linear(width, keys, bias=False)
        self.v, self.gate = nn.Linear(width, values, bias=False), nn.Linear(width, values, bias=False)
        self.out = nn.Linear(values, width, bias=False)

    def update(self, x_BLE: Float[Tensor, "B L E"], show: Show) -> Turning:
        """Return queries, keys and values, and the decay of each head."""
        number, width, _ = self.shape
        q_BLHC, k_BLHC, v_BLHE = (in_heads(part(x_BLE), number) for part in (self.q, self.k, self.v))
        q_BLHC, k_BLHC, v_BLHE = show("query", q_BLHC), show("key", k_BLHC), show("value", v_BLHE)
        decay_H = decays(number, x_BLE.device).to(matrix_state.wide(x_BLE).dtype)
        length_B = torch.full((len(x_BLE),), x_BLE.shape[1], device=x_BLE.device)
        return Turning(q_BLHC, k_BLHC * width**-0.5, v_BLHE, decay_H[:, None].expand(*v_BLHE.shape[:3], 1), length_B)

    def finish(
        self, y_BLHE: Float[Tensor, "B L H E"], x_BLF: Float[Tensor, "B L F"], show: Show
    ) -> Float[Tensor, "B L D"]:
        """Normalise each head and let the gate decide what passes."""
        normed_BLHE = F.layer_norm(y_BLHE, y_BLHE.shape[-1:], eps=self.eps)
        return self.out(normed_BLHE.flatten(2) * show("output_gate", F.silu(self.gate(x_BLF))))


def decays(number: int, device: torch.device) -> Float[Tensor, "H"]:
    """Return the logarithm of ``1 - 2^(-5 - h)`` for each head, in float64."""
    return torch.log1p(-torch.exp2(-5.0 - torch.arange(number, device=device, dtype=torch.float64)))
