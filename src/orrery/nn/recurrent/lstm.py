"""The long short-term memory."""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.cache.contract import State
from orrery.nn.mixer import Show
from orrery.nn.recurrent.recurrence import Recurrence
from orrery.nn.spec import ModuleSpec, spec


class LSTM(Recurrence):
    """``c_t = f * c_{t-1} + i * g``, ``h_t = o * tanh(c_t)`` (Hochreiter and Schmidhuber 1997; Gers et al. 2000).

    ``i, f, o = sigmoid(W x_t + U h_{t-1} + b)``, each with matrices of its own, and ``g = tanh(...)`` likewise.
    Shapes: ``[B, L, D]`` to ``[B, L, D]``; the engine stacks the matrices in the order i, f, g, o.
    """

    @spec
    class Spec(ModuleSpec):
        """The mask of the stack that says what came before."""

        keeps_state: ClassVar[bool] = True

        mask: str = "past"

        def build(self, width: int) -> "LSTM":
            """Return the recurrence."""
            return LSTM(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.mask = spec.mask
        self.engine = nn.LSTM(width, width, batch_first=True)

    @property
    def states(self) -> int:
        """Two: h and c."""
        return 2

    def step(self, x_BD: Float[Tensor, "B D"], state: State, show: Show) -> tuple[Float[Tensor, "B D"], State]:
        """Take one token a row."""
        h_BD, c_BD = state
        h_BD, c_BD = lstm_step(self.of_input(x_BD) + self.of_state(h_BD), c_BD, show)
        return h_BD, (h_BD, c_BD)


def lstm_step(
    mixed_BE: Float[Tensor, "B E"], c_BD: Float[Tensor, "B D"], show: Show
) -> tuple[Float[Tensor, "B D"], Float[Tensor, "B D"]]:
    """Return h and c after one step, from what input and old state give to the gates: i, f, g, o side by side."""
    i, f, g, o = mixed_BE.chunk(4, dim=-1)
    i, f = show("input_gate", torch.sigmoid(i)), show("forget_gate", torch.sigmoid(f))
    g, o = show("candidate", torch.tanh(g)), show("output_gate", torch.sigmoid(o))
    c_BD = show("cell", f * c_BD + i * g)
    return o * torch.tanh(c_BD), c_BD
