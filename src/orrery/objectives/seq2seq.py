"""Sequence to sequence: each target token is predicted from the source and the true tokens before it."""

from jaxtyping import Float
from torch import Tensor, nn

from orrery.objectives.causal import TokenObjective
from orrery.objectives.protocols import Batch


class TeacherForced(TokenObjective):
    """``-log p(y_t | x, y_<t)``, with the true ``y_<t`` whatever the model would have written.

    Williams and Zipser 1989 call it teacher forcing. A batch has ``source``, ``source_real``, ``ids`` (the start
    token, then the target) and ``targets`` (the target, then the end token), -100 where there is none.
    """

    def hidden(self, model: nn.Module, batch: Batch) -> Float[Tensor, "B L D"]:
        """Read source and target; padding on the right comes after every target, so it needs no mask."""
        return model.hidden(batch["source"], batch["ids"], source_real=batch["source_real"])  # type: ignore[operator]
