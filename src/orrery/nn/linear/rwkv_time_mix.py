"""RWKV's time mixing: an average of the past whose weights fade with the distance, channel by channel."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from orrery.nn.cache.contract import State
from orrery.nn.initialisation import Draw
from orrery.nn.linear import faded_sums
from orrery.nn.linear.faded_sums import NOTHING, Sums
from orrery.nn.linear.token_shift import TokenShift, last_real, shifted
from orrery.nn.mixer import Form, Show, StatefulMixer, unseen
from orrery.nn.spec import ModuleSpec, spec

SumsForm: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor, Sums], tuple[Tensor, Sums]]
"""From k, v, decays, bonus and the sums of the past to averages and the sums after them."""


class RWKVTimeMix(StatefulMixer):
    """``W_o (sigmoid(r_t) * wkv_t)`` of RWKV-4 (Peng et al. 2023, equations 11 to 16).

    ``wkv_t = (sum_{i<t} e^{-(t-1-i) w + k_i} v_i + e^{u + k_t} v_t) / (the same sums without v)`` for each channel,
    where w > 0 is a learned decay, u a learned bonus of the token itself, and r, k, v read token shifts of x.
    The sums are kept as ``a e^m`` and ``b e^m`` with the largest exponent m taken out, so that none overflows.
    State: the last token's input, a, b, m. Shapes: ``[B, L, D]`` through ``[B, L, C]`` to ``[B, L, D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """``channels`` that average; the mask of the stack that says what came before."""

        keeps_state: ClassVar[bool] = True

        channels: int
        mask: str = "past"

        def build(self, width: int) -> "RWKVTimeMix":
            """Return the mixer."""
            return RWKVTimeMix(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.mask = spec.mask
        self.shift_k, self.shift_v, self.shift_r = TokenShift(width), TokenShift(width), TokenShift(width)
        self.k = nn.Linear(width, spec.channels, bias=False)
        self.v = nn.Linear(width, spec.channels, bias=False)
        self.r = nn.Linear(width, spec.channels, bias=False)
        self.out = nn.Linear(spec.channels, width, bias=False)
        self.log_decay = nn.Parameter(torch.zeros(spec.channels))
        self.bonus = nn.Parameter(torch.zeros(spec.channels))

    @torch.no_grad()
    def initialise(self, draw: Draw) -> None:
        """Draw the matrices as usual; decays, bonuses and shifts begin spread over the channels (appendix E)."""
        for name, part in self.named_modules():
            draw.usual(part, name)
        channels, near = len(self.log_decay), 1 - draw.layer / draw.depth
        places_C = torch.arange(channels, device=self.log_decay.device)
        speed_C = (places_C / max(1, channels - 1)) ** (0.7 + 1.3 * draw.height)
        self.log_decay.copy_(-5 + 8 * speed_C)
        self.bonus.copy_(torch.tensor(0.3).log() + 0.5 * ((places_C + 1) % 3 - 1))
        self.shift_k.draw(near)
        self.shift_v.draw(near, 0.3 * draw.height)
        self.shift_r.draw(near / 2)

    @property
    def forms(self) -> Mapping[str, Form]:
        """Piece by piece, or all tokens at once."""
        return {
            "chunked": self.over_rows(partial(self._over, faded_sums.chunked)),
            "parallel": self.over_rows(partial(self._over, faded_sums.parallel)),
        }

    def begin(self, x_BLD: Float[Tensor, "B L D"]) -> State:
        """Return sums without terms; they have float32 at least."""
        wide = torch.promote_types(x_BLD.dtype, torch.float32)
        zeros_BC = x_BLD.new_zeros(len(x_BLD), len(self.log_decay), dtype=wide)
        return x_BLD.new_zeros(len(x_BLD), x_BLD.shape[2]), zeros_BC, zeros_BC, torch.full_like(zeros_BC, NOTHING)

    def step(self, x_BD: Float[Tensor, "B D"], state: State, show: Show) -> tuple[Float[Tensor, "B D"], State]:
        """Take one token a row."""
        before_BD, *past = state
        r_BC, k_BC, v_BC = self._read(x_BD, before_BD, show)
        wkv_BC, (a_BC, b_BC, m_BC) = faded_sums.step(k_BC, v_BC, -self.log_decay.exp(), self.bonus, _sums(past))
        return self._written(r_BC, show("wkv", wkv_BC)), (x_BD, a_BC, b_BC, m_BC)

    def _over(
        self, form: SumsForm, x_NTD: Float[Tensor, "N T D"], real_NT: Bool[Tensor, "N T"] | None, state: State
    ) -> tuple[Float[Tensor, "N T D"], State]:
        """Take all tokens of rows; padding adds no term, and nothing fades while it passes."""
        before_ND, *past = state
        r_NTC, k_NTC, v_NTC = self._read(x_NTD, shifted(x_NTD, before_ND), unseen)
        decay_NTC = -self.log_decay.exp().expand_as(k_NTC)
        if real_NT is not None:
            k_NTC = torch.where(real_NT[..., None], k_NTC, NOTHING)
            decay_NTC = torch.where(real_NT[..., None], decay_NTC, 0)
        wkv_NTC, (a_NC, b_NC, m_NC) = form(k_NTC, v_NTC, decay_NTC, self.bonus, _sums(past))
        return self._written(r_NTC, wkv_NTC), (last_real(x_NTD, real_NT), a_NC, b_NC, m_NC)

    def _read(self, x: Tensor, before: Tensor, show: Show) -> tuple[Tensor, Tensor, Tensor]:
        """Return r, and with float32 at least, as the sums are, k and v."""
        r = show("receptance", torch.sigmoid(self.r(self.shift_r(x, before))))
        k, v = self.k(self.shift_k(x, before)), self.v(self.shift_v(x, before))
        wide = torch.promote_types(k.dtype, torch.float32)
        return r, show("k", k.to(wide)), show("v", v.to(wide))

    def _written(self, r: Tensor, wkv: Tensor) -> Tensor:
        return self.out(r * wkv.to(r.dtype))


def _sums(past: Sequence[Tensor]) -> Sums:
    a, b, m = past
    return a, b, m
