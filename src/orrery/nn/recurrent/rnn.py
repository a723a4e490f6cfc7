"""The simple recurrent network."""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.cache.contract import State
from orrery.nn.mixer import Show
from orrery.nn.recurrent.recurrence import Recurrence
from orrery.nn.spec import ModuleSpec, spec


class ElmanRNN(Recurrence):
    """``h_t = tanh(W_x x_t + b_x + W_h h_{t-1} + b_h)`` (Elman 1990).

    Differs from the course: two biases, as torch has them; their sum is the one of the slide.
    Shapes: ``[B, L, D]`` to ``[B, L, D]``.
    """

    @spec
    class Spec(ModuleSpec):
        """The mask of the stack that says what came before."""

        keeps_state: ClassVar[bool] = True

        mask: str = "past"

        def build(self, width: int) -> "ElmanRNN":
            """Return the recurrence."""
            return ElmanRNN(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.mask = spec.mask
        self.engine = nn.RNN(width, width, batch_first=True)

    @property
    def states(self) -> int:
        """One: h."""
        return 1

    def step(self, x_BD: Float[Tensor, "B D"], state: State, show: Show) -> tuple[Float[Tensor, "B D"], State]:
        """Take one token a row."""
        h_BD = torch.tanh(self.of_input(x_BD) + self.of_state(state[0]))
        return h_BD, (h_BD,)
