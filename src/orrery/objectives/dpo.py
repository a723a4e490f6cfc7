"""Direct preference optimisation (DPO): the chosen reply gains probability against the rejected one."""

from typing import TYPE_CHECKING, Literal

from orrery.objectives import register
from orrery.objectives._preferences import WithReference, difference, sigmoid_cost
from orrery.schema.numbers import AboveZero, Fraction
from orrery.schema.section import Section

if TYPE_CHECKING:
    from torch import Tensor


@register
class DirectPreference(WithReference):
    """``-log s(beta (h(y_w) - h(y_l)))`` in nats, the mean over pairs; ``h(y) = log p(y | x) - log p_ref(y | x)``.

    ``y_w`` is chosen, ``y_l`` rejected, ``s`` the logistic function; log probabilities are sums over a reply's tokens.
    Rafailov et al. 2023, equation 7. With label smoothing ``e`` it is ``-(1 - e) log s(m) - e log s(-m)``, conservative
    DPO (Mitchell 2023). A batch has ``ids``, ``real`` and ``reply`` [B, 2, L].
    """

    class Settings(Section):
        """``beta`` holds the model to the reference; ``label_smoothing`` is how often a label may be wrong."""

        kind: Literal["dpo"] = "dpo"
        beta: AboveZero = 0.1
        label_smoothing: Fraction = 0.0

    def __init__(self, beta: float = 0.1, label_smoothing: float = 0.0) -> None:
        self.beta, self.label_smoothing = beta, label_smoothing

    def cost(self, h_B2: "Tensor", lengths_B2: "Tensor") -> "Tensor":
        """Return the cost of each pair."""
        return sigmoid_cost(self.beta * difference(h_B2), self.label_smoothing)
