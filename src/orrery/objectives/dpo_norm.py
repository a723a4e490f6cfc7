"""Length-normalised DPO: the log ratio of a reply is the mean over its tokens."""

from typing import TYPE_CHECKING, Literal

from orrery.objectives import register
from orrery.objectives._preferences import WithReference, difference, sigmoid_cost
from orrery.schema.numbers import AboveZero, Fraction
from orrery.schema.section import Section

if TYPE_CHECKING:
    from torch import Tensor


@register
class LengthNormalisedPreference(WithReference):
    """``-log s(beta (h(y_w) / |y_w| - h(y_l) / |y_l|))`` in nats, the mean over pairs; ``h`` as in ``dpo``.

    A sum over tokens grows with the length, so that plain DPO can win by length alone. Lambert et al. 2024 (Tulu 3),
    section 5.1.2, who take a ``beta`` of 5. A batch has ``ids``, ``real`` and ``reply`` [B, 2, L].
    """

    class Settings(Section):
        """``beta`` is larger than in plain DPO, as it multiplies a mean."""

        kind: Literal["dpo_norm"] = "dpo_norm"
        beta: AboveZero = 5.0
        label_smoothing: Fraction = 0.0

    def __init__(self, beta: float = 5.0, label_smoothing: float = 0.0) -> None:
        self.beta, self.label_smoothing = beta, label_smoothing

    def cost(self, h_B2: "Tensor", lengths_B2: "Tensor") -> "Tensor":
        """Return the cost of each pair."""
        return sigmoid_cost(self.beta * difference(h_B2 / lengths_B2), self.label_smoothing)

    def rewards(self, h_B2: "Tensor", lengths_B2: "Tensor") -> "Tensor":
        """Return the rewards of the replies, a mean over tokens as in the cost."""
        return self.beta * h_B2 / lengths_B2
