"""What the objectives that train one head share: its name, and the refusal of a model without it."""

from abc import ABC
from typing import TYPE_CHECKING

from orrery.errors import UsageError
from orrery.objectives import Objective
from orrery.schema.registry import label_of

if TYPE_CHECKING:
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

    def heads(self, spec: "ModelSpec") -> tuple[str, ...]:
        """Return the head."""
        return (self.head,)
