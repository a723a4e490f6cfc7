"""Simple preference optimisation (SimPO): mean log probabilities and a margin, without a reference model."""

from typing import TYPE_CHECKING, Literal

from orrery.objectives import register
from orrery.objectives._preferences import WithoutReference, difference, sigmoid_cost
from orrery.schema.numbers import AboveZero, NotNegative
from orrery.schema.section import Section

if TYPE_CHECKING:
    from torch import Tensor


@register
class SimplePreference(WithoutReference):
    """``-log s(beta / |y_w| log p(y_w | x) - beta / |y_l| log p(y_l | x) - gamma)`` in nats, the mean over pairs.

    Meng et al. 2024, equation 6. A batch has ``ids``, ``real`` and ``reply`` [B, 2, L].
    """

    class Settings(Section):
        """``beta`` scales the mean log probabilities, ``gamma`` is the margin that the chosen reply is to have."""

        kind: Literal["simpo"] = "simpo"
        beta: AboveZero = 2.0
        gamma: NotNegative = 0.5

    def __init__(self, beta: float = 2.0, gamma: float = 0.5) -> None:
        self.beta, self.gamma = beta, gamma

    def cost(self, mean_B2: "Tensor") -> "Tensor":
        """Return the cost of each pair."""
        return sigmoid_cost(self.beta * difference(mean_B2) - self.gamma)
