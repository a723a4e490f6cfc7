"""What the objectives that train one head share: its name, and the refusal of a model without it."""

from abc import ABC
from collections.abc import Mapping
from typing import TYPE_CHECKING

from orrery.errors import UsageError
from orrery.objectives import Objective
from orrery.schema.registry import label_of

if TYPE_CHECKING:
    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer


class OnHead(Objective, ABC):
    """An objective that trains the head of one name, which a model gets where it lacks it."""

    head: str

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Refuse a model without the head.

        Raises:
            UsageError: it has none of this name.
        """
        if self.head not in spec.head_names:
            known = ", ".join(spec.head_names) or "none"
            message = f"the objective {label_of(type(self))} trains the head {self.head}, the model has {known}"
            raise UsageError(message, "name one it has")

    def tokens_of(self, batch: "Batch", counts: Mapping[str, int]) -> int:
        """Return the tokens that the model reads: the terms count rows, or words."""
        return int(batch["real"].sum()) if "real" in batch else batch["ids"].numel()

    def heads(self, spec: "ModelSpec") -> tuple[str, ...]:
        """Return the head."""
        return (self.head,)
