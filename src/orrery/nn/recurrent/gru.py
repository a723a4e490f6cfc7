"""The gated recurrent unit."""

from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.nn.cache.contract import State
from orrery.nn.mixer import Show
from orrery.nn.recurrent.recurrence import Recurrence
from orrery.nn.spec import ModuleSpec, spec


class GRU(Recurrence):
    """``h_t = (1 - z) * n + z * h_{t-1}``, ``n = tanh(W x_t + b + r * (U h_{t-1} + d))`` (Cho et al. 2014).

    ``r, z = sigmoid(W x_t + U h_{t-1} + b)``, each with matrices of its own: reset and update. Differs from the
    paper, as torch does: the reset gate acts after the product with ``U``, and ``z`` keeps the old state.
    Shapes: ``[B, L, D]`` to ``[B, L, D]``; the engine stacks the matrices in the order r, z, n.
    """

    @spec
    class Spec(ModuleSpec):
        """The mask of the stack that says what came before."""

        keeps_state: ClassVar[bool] = True

        mask: str = "past"

        def build(self, width: int) -> "GRU":
            """Return the recurrence."""
            return GRU(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.mask = spec.mask
        self.engine = nn.GRU(width, width, batch_first=True)

    @property
    def states(self) -> int:
        """One: h."""
        return 1

    def step(self, x_BD: Float[Tensor, "B D"], state: State, show: Show) -> tuple[Float[Tensor, "B D"], State]:
        """Take one token a row."""
        (h_BD,) = state
        h_BD = gru_step(self.of_input(x_BD), self.of_state(h_BD), h_BD, show)
        return h_BD, (h_BD,)


def gru_step(
    new_BE: Float[Tensor, "B E"], old_BE: Float[Tensor, "B E"], h_BD: Float[Tensor, "B D"], show: Show
) -> Float[Tensor, "B D"]:
    """Return h after one step, from what the input and the old state give to the gates: r, z, n side by side."""
    new, old = new_BE.chunk(3, dim=-1), old_BE.chunk(3, dim=-1)
    r, z = (torch.sigmoid(a + b) for a, b in zip(new[:2], old[:2], strict=True))
    r, z = show("reset_gate", r), show("update_gate", z)
    n = show("candidate", torch.tanh(new[2] + r * old[2]))
    return (1 - z) * n + z * h_BD
