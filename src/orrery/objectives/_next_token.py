"""The loss of each next token, which the objectives of decoders and of encoder-decoders share."""

from typing import TYPE_CHECKING, Any

from orrery.objectives import Term
from orrery.objectives._balance import Balance

if TYPE_CHECKING:
    from torch import Tensor, nn

    from orrery.models.inputs import Batch

TERM = "next_token"
NONE = Balance()
"""No balance of experts: the loss of the targets alone."""


def counts(batch: "Batch") -> dict[str, int]:
    """Count the targets that are not ignored."""
    from orrery.nn.cross_entropy import IGNORED

    return {TERM: int((batch["targets"] != IGNORED).sum())}


def loss(model: Any, batch: "Batch", label_smoothing: float, balance: Balance = NONE) -> dict[str, Term]:
    """Return the summed cross entropy of the main head, the number of targets, and the balance of experts."""
    from orrery.nn.cross_entropy import IGNORED, head_cross_entropy

    targets_BL = batch["targets"]

    def summed(head: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "Tensor":
        return head_cross_entropy(head, x_BLD.flatten(0, 1), targets_BL.flatten(), label_smoothing)

    # Inside the call, so that what wraps the model (sharding, compilation) has the head's weights at hand.
    sums, more = balance.call(model, batch, {model.spec.head_names[0]: summed})
    (total,) = sums.values()
    return {TERM: Term(total, (targets_BL != IGNORED).sum()), **more}
