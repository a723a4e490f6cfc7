"""LSTM decoders that begin where the encoder ended: alone (Sutskever), or looking back at the source (Luong)."""

from functools import partial
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.attention.alignment_score import Additive, AlignmentScore, Dot, General
from orrery.nn.cache.contract import State
from orrery.nn.mixer import Show
from orrery.nn.recurrent.attention_decoder import AttentionDecoder, EncodedSource
from orrery.nn.recurrent.lstm import lstm_step
from orrery.nn.spec import ModuleSpec, spec


class Layers(nn.Module):
    """LSTM layers on top of each other, for one step.

    Shapes: x ``[B, E]`` (already times the first layer's matrix) and ``h, c`` of each layer ``[B, D]``.
    """

    def __init__(self, layers: int, width: int) -> None:
        super().__init__()
        self.inputs = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(layers - 1))
        self.states = nn.ModuleList(nn.Linear(width, 4 * width) for _ in range(layers))

    def forward(self, x_BE: Tensor, state: State, show: Show) -> tuple[Tensor, State]:
        """Return the top layer's h and the states of all."""
        after: list[Tensor] = []
        for depth, own in enumerate(self.states):
            h_BD, c_BD = state[2 * depth : 2 * depth + 2]
            h_BD, c_BD = lstm_step(x_BE + own(h_BD), c_BD, partial(_show_layer, show, depth))
            after += [h_BD, c_BD]
            if depth + 1 < len(self.states):
                x_BE = self.inputs[depth](h_BD)
        return h_BD, tuple(after)


def _show_layer(show: Show, depth: int, name: str, gate: Tensor) -> Tensor:
    return show(f"{name}.{depth}", gate)


class LSTMDecoder(AttentionDecoder):
    """An LSTM language model that begins with the encoder's last states (Sutskever, Vinyals and Le 2014).

    The encoder states' first ``2 layers`` places are h and c of each layer, and nothing else of them is looked at.
    Shapes: x ``[B, L, D]`` and encoder states ``[B, S, D]`` to ``[B, L, D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """The layers, as many as the encoder's, and the mask that says what came before."""

        keeps_state: ClassVar[bool] = True

        layers: int
        mask: str = "past"

        def build(self, width: int) -> "LSTMDecoder":
            """Return the decoder."""
            return LSTMDecoder(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.mask, self.places = spec.mask, 2 * spec.layers
        self.word, self.layers = nn.Linear(width, 4 * width), Layers(spec.layers, width)

    def keys(self, encoder_states_BSM: Float[Tensor, "B S M"]) -> Float[Tensor, "B S E"]:
        """Return nothing: no place is scored."""
        return encoder_states_BSM[..., :0]

    def begin(self, source: EncodedSource) -> State:
        """Return the encoder's last states."""
        return source.encoder_states_BSM[:, : self.places].unbind(1)

    def prepare(self, x_BLD: Float[Tensor, "B L D"]) -> Float[Tensor, "B L E"]:
        """Return what the words give to the gates."""
        return self.word(x_BLD)

    def step(self, x_BE: Tensor, state: State, source: EncodedSource, show: Show) -> tuple[Tensor, State]:
        """Return the top layer's output and the states of all layers."""
        return self.layers(x_BE, state, show)

    def finish(self, x_BLD: Float[Tensor, "B L D"], y_BLR: Float[Tensor, "B L R"]) -> Float[Tensor, "B L D"]:
        """Return the top layer's h."""
        return y_BLR


class InputFeedingLSTM(AttentionDecoder):
    """``h_t = LSTM([y; o_{t-1}])``, ``c_t = attend(h_t)``, ``o_t = tanh(W [c_t; h_t])`` (Luong et al. 2015).

    Step first, then look, and feed what was found into the next step (section 3.3). The first ``2 layers`` places
    of what the encoder gives are its last states, which attention does not see.
    Shapes: x ``[B, L, D]`` and encoder states ``[B, S, D]`` to ``[B, L, D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """The layers, how places are scored (dot, general, concat), and the mask that says what came before."""

        keeps_state: ClassVar[bool] = True

        layers: int
        scoring: Dot.Spec | General.Spec | Additive.Spec
        mask: str = "past"

        def build(self, width: int) -> "InputFeedingLSTM":
            """Return the decoder."""
            return InputFeedingLSTM(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.mask, self.places = spec.mask, 2 * spec.layers
        self.scoring: AlignmentScore = spec.scoring.build(width)
        self.word, self.fed = nn.Linear(width, 4 * width), nn.Linear(width, 4 * width, bias=False)
        self.layers, self.combine = Layers(spec.layers, width), nn.Linear(2 * width, width, bias=False)

    def keys(self, encoder_states_BSM: Float[Tensor, "B S M"]) -> Float[Tensor, "B S E"]:
        """Return the score's own keys of the encoder states."""
        return self.scoring.keys(encoder_states_BSM)

    def begin(self, source: EncodedSource) -> State:
        """Return nothing found yet, and the encoder's last states."""
        states = source.encoder_states_BSM[:, : self.places].unbind(1)
        return (torch.zeros_like(states[0]), *states)

    def prepare(self, x_BLD: Float[Tensor, "B L D"]) -> Float[Tensor, "B L E"]:
        """Return what the words give to the gates."""
        return self.word(x_BLD)

    def step(self, x_BE: Tensor, state: State, source: EncodedSource, show: Show) -> tuple[Tensor, State]:
        """Step the recurrence, then attend with its new state."""
        found_BD, *states = state
        h_BD, after = self.layers(x_BE + self.fed(found_BD), tuple(states), show)
        c_BD = source.attend(self.scoring, h_BD, show)
        found_BD = torch.tanh(self.combine(torch.cat([c_BD, h_BD], -1)))
        return found_BD, (found_BD, *after)

    def finish(self, x_BLD: Float[Tensor, "B L D"], y_BLR: Float[Tensor, "B L R"]) -> Float[Tensor, "B L D"]:
        """Return what was found."""
        return y_BLR
