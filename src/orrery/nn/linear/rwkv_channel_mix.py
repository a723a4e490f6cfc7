"""RWKV's channel mixing: a feed-forward network that also reads the token before."""

from collections.abc import Mapping
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from orrery.nn.cache.contract import State
from orrery.nn.initialisation import Draw
from orrery.nn.linear.token_shift import TokenShift, last_real, shifted
from orrery.nn.mixer import Form, Show, StatefulMixer, unseen
from orrery.nn.spec import ModuleSpec, spec


class RWKVChannelMix(StatefulMixer):
    """``sigmoid(R r_t) * V max(K k_t, 0)^2``, where r and k are token shifts of x (Peng et al. 2023, equation 17).

    Its state is the last token's input. Shapes: ``[B, L, D]`` through ``[B, L, F]`` to ``[B, L, D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """``hidden`` channels; the mask of the stack that says what came before."""

        keeps_state: ClassVar[bool] = True

        hidden: int
        mask: str = "past"

        def build(self, width: int) -> "RWKVChannelMix":
            """Return the network."""
            return RWKVChannelMix(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.mask = spec.mask
        self.shift_k, self.shift_r = TokenShift(width), TokenShift(width)
        self.k = nn.Linear(width, spec.hidden, bias=False)
        self.r = nn.Linear(width, width, bias=False)
        self.down = nn.Linear(spec.hidden, width, bias=False)

    def initialise(self, draw: Draw) -> None:
        """Draw the matrices as usual; a higher block begins with more of the token itself."""
        for name, part in self.named_modules():
            draw.usual(part, name)
        for shift in (self.shift_k, self.shift_r):
            shift.draw(1 - draw.layer / draw.depth)

    @property
    def forms(self) -> Mapping[str, Form]:
        """All tokens at once, beside the steps."""
        return {"parallel": self.over_rows(self.parallel)}

    def begin(self, x_BLD: Float[Tensor, "B L D"]) -> State:
        """Return zeros: there is nothing before the first token."""
        return (x_BLD.new_zeros(len(x_BLD), x_BLD.shape[2]),)

    def step(self, x_BD: Float[Tensor, "B D"], state: State, show: Show) -> tuple[Float[Tensor, "B D"], State]:
        """Take one token a row."""
        return self._mixed(x_BD, state[0], show), (x_BD,)

    def parallel(
        self, x_NTD: Float[Tensor, "N T D"], real_NT: Bool[Tensor, "N T"] | None, state: State
    ) -> tuple[Float[Tensor, "N T D"], State]:
        """Take all tokens of rows."""
        return self._mixed(x_NTD, shifted(x_NTD, state[0]), unseen), (last_real(x_NTD, real_NT),)

    def _mixed(self, x: Tensor, before: Tensor, show: Show) -> Tensor:
        hidden = show("hidden", torch.relu(self.k(self.shift_k(x, before))).square())
        return show("receptance", torch.sigmoid(self.r(self.shift_r(x, before)))) * self.down(hidden)
