"""The decoder of RNNsearch: look first, then step (Bahdanau, Cho and Bengio 2015)."""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.attention.alignment_score import Additive, AlignmentScore
from orrery.nn.cache.contract import State
from orrery.nn.mixer import Show
from orrery.nn.recurrent.attention_decoder import AttentionDecoder, EncodedSource
from orrery.nn.recurrent.gru import gru_step
from orrery.nn.spec import ModuleSpec, spec


class BahdanauDecoder(AttentionDecoder):
    """``c_t = attend(s_{t-1})``, ``s_t = GRU(s_{t-1}, [y; c_t])``, ``out = maxout(U s_{t-1} + V y + C c_t)``.

    Bahdanau et al. 2015, appendix A.2.2; ``s_0 = tanh(W m_0)``. Over one encoder state, at which every step looks
    with weight one, it is the RNN encoder-decoder (Cho et al. 2014). Differs from the paper: one width D for words,
    states and outputs; ``m_0`` is what both directions say of the first word, not the backward one alone.
    Shapes: x ``[B, L, D]`` and encoder states ``[B, S, M]`` to ``[B, L, D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """The width of the encoder states, how places are scored, and the mask that says what came before."""

        keeps_state: ClassVar[bool] = True

        encoder_width: int
        scoring: Additive.Spec
        mask: str = "past"

        def build(self, width: int) -> "BahdanauDecoder":
            """Return the decoder."""
            return BahdanauDecoder(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.mask = spec.mask
        self.scoring: AlignmentScore = spec.scoring.build(width)
        self.first = nn.Linear(spec.encoder_width, width)
        self.word, self.context = nn.Linear(width, 3 * width), nn.Linear(spec.encoder_width, 3 * width, bias=False)
        self.state = nn.Linear(width, 3 * width)
        self.readout = nn.Linear(2 * width + spec.encoder_width, 2 * width)

    def keys(self, encoder_states_BSM: Float[Tensor, "B S M"]) -> Float[Tensor, "B S E"]:
        """Return the score's own keys of the encoder states."""
        return self.scoring.keys(encoder_states_BSM)

    def begin(self, source: EncodedSource) -> State:
        """Return ``tanh(W m)`` of the first place that may be seen."""
        first_B = source.seen_BS.int().argmax(1)
        return (torch.tanh(self.first(source.encoder_states_BSM[torch.arange(len(first_B)), first_B])),)

    def prepare(self, x_BLD: Float[Tensor, "B L D"]) -> Float[Tensor, "B L E"]:
        """Return what the words give to the gates."""
        return self.word(x_BLD)

    def step(self, x_BE: Tensor, state: State, source: EncodedSource, show: Show) -> tuple[Tensor, State]:
        """Look, then step; the old state and the context lead to the output."""
        (s_BD,) = state
        c_BM = source.attend(self.scoring, s_BD, show)
        after_BD = gru_step(x_BE + self.context(c_BM), self.state(s_BD), s_BD, show)
        return torch.cat([s_BD, c_BM], -1), (after_BD,)

    def finish(self, x_BLD: Float[Tensor, "B L D"], y_BLR: Float[Tensor, "B L R"]) -> Float[Tensor, "B L D"]:
        """Return the greater of each pair (Goodfellow et al. 2013)."""
        return self.readout(torch.cat([y_BLR, x_BLD], -1)).unflatten(-1, (-1, 2)).amax(-1)
