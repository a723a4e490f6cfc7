"""A made-up mixer with a state and a family of it: what stands in this one file is all that a new mixer is.

It is linear attention whose memory decays, with all three forms and a parameter that it draws in its own way.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import nn

from orrery.families import _linear, _recurrent
from orrery.models.decoder import Decoder
from orrery.nn import spec as specs
from orrery.nn.cache.contract import State
from orrery.nn.initialisation import Draw
from orrery.nn.mixer import Form, Show, StatefulMixer


@specs.register
class Decaying(StatefulMixer):
    """``S_t = g * S_{t-1} + k_t v_t^T``, ``y_t = W q_t S_t``. Shapes: ``[B, L, D]`` to ``[B, L, D]``."""

    @specs.spec
    class Spec(specs.ModuleSpec):
        """The mask that says what came before."""

        keeps_state: ClassVar[bool] = True

        mask: str = "past"

        def build(self, width: int) -> "Decaying":
            return Decaying(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.mask = spec.mask
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)
        self.decay = nn.Parameter(torch.zeros(width))

    def initialise(self, draw: Draw) -> None:
        for name, part in self.named_modules():
            draw.usual(part, name)
        draw.uniform(self.decay, 3.0)

    @property
    def forms(self) -> Mapping[str, Form]:
        return {"chunked": self.over_rows(self.chunked), "parallel": self.over_rows(self.parallel)}

    def begin(self, x_BLD: torch.Tensor) -> State:
        return (x_BLD.new_zeros(len(x_BLD), x_BLD.shape[2], x_BLD.shape[2]),)

    def step(self, x_BD: torch.Tensor, state: State, show: Show) -> tuple[torch.Tensor, State]:
        q_BD, k_BD, v_BD = self.qkv(x_BD).chunk(3, -1)
        memory = torch.sigmoid(self.decay)[:, None] * state[0] + k_BD[:, :, None] * v_BD[:, None]
        show("strength", k_BD * q_BD)
        return self.out(torch.einsum("bd,bde->be", q_BD, memory)), (memory,)

    def parallel(self, x_NTD, real_NT, state):
        q_NTD, k_NTD, v_NTD = self.qkv(x_NTD).chunk(3, -1)
        if real_NT is None:
            real_NT = x_NTD.new_ones(x_NTD.shape[:2], dtype=torch.bool)
        k_NTD = k_NTD * real_NT[..., None]
        g_D, places_T = torch.sigmoid(self.decay), torch.arange(x_NTD.shape[1])
        ago_TT = places_T[:, None] - places_T
        faded_TTD = torch.where(ago_TT[..., None] >= 0, g_D ** ago_TT.clamp(min=0)[..., None], 0)
        scores_NTT = torch.einsum("ntd,nsd,tsd->nts", q_NTD, k_NTD, faded_TTD)
        before_NTD = torch.einsum("ntd,td,nde->nte", q_NTD, g_D ** (places_T + 1)[:, None], state[0])
        length_N1 = real_NT.sum(1)[:, None]
        left_NTD = g_D ** (length_N1 - 1 - places_T).clamp(min=0)[..., None]
        after = (g_D**length_N1)[..., None] * state[0] + torch.einsum("ntd,ntd,nte->nde", k_NTD, left_NTD, v_NTD)
        return self.out(scores_NTT @ v_NTD + before_NTD), (after,)

    def chunked(self, x_NTD, real_NT, state):
        said = []
        for begin in range(0, x_NTD.shape[1], 4):
            real = None if real_NT is None else real_NT[:, begin : begin + 4]
            # Torch multiplies a slice that is not contiguous in two ways, by whether the matrix learns.
            y_NTD, state = self.parallel(x_NTD[:, begin : begin + 4].contiguous(), real, state)
            said.append(y_NTD)
        return torch.cat(said, 1), state


ARCHITECTURE = "DecayingLanguageModel"
DEFAULTS = _recurrent.DEFAULTS
TINY = _recurrent.TINY


def spec(config: Mapping[str, Any]) -> Decoder.Spec:
    """Return a language model of decaying memories."""
    return _recurrent.assemble("decaying", config, Decaying.Spec())


WEIGHTS = _linear.own_names(spec)
