"""Identity preference optimisation (IPO): the log ratios of a pair come to lie a fixed distance apart."""

from typing import TYPE_CHECKING, Literal

from orrery.objectives import register
from orrery.objectives._preferences import WithReference, difference
from orrery.schema.numbers import AboveZero
from orrery.schema.section import Section

if TYPE_CHECKING:
    from torch import Tensor


@register
class IdentityPreference(WithReference):
    """``(h(y_w) / |y_w| - h(y_l) / |y_l| - 1 / (2 beta))^2``, the mean over pairs; ``h`` as in ``dpo``.

    Azar et al. 2023, equation 17, where ``beta`` is called tau: a squared error has no reason to drive a margin to
    infinity where a label never varies. A batch has ``ids``, ``real`` and ``reply`` [B, 2, L].

    Differs from the equation, which has sums over tokens: with means the distance does not depend on the length, as in
    trl, whose authors report that the paper's experiments were done so.
    """

    class Settings(Section):
        """``beta`` holds the model to the reference: the log ratios of a pair end ``1 / (2 beta)`` apart."""

        kind: Literal["ipo"] = "ipo"
        beta: AboveZero = 0.1

    def __init__(self, beta: float = 0.1) -> None:
        self.beta = beta

    def cost(self, h_B2: "Tensor", lengths_B2: "Tensor") -> "Tensor":
        """Return the cost of each pair."""
        return (difference(h_B2 / lengths_B2) - 1 / (2 * self.beta)).square()
