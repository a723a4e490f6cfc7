"""What the objectives that train one head share: its name, the refusal of a model without it, and word dropout."""

from abc import ABC
from copy import copy
from typing import TYPE_CHECKING

from orrery.errors import UsageError
from orrery.objectives import Objective
from orrery.objectives._masking import Masking
from orrery.objectives._real import real_tokens
from orrery.schema.numbers import Fraction
from orrery.schema.registry import label_of
from orrery.schema.section import Section

if TYPE_CHECKING:
    import torch

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer


class OnHeadSettings(Section, ABC):
    """``word_dropout`` is the share of the words that training hides behind the mask token, drawn again each step.

    A model that cannot rely on every word learns to use those around it (Iyyer et al. 2015, section 3.2, who leave the
    words out).
    """

    word_dropout: Fraction = 0.0


class OnHead(Objective, ABC):
    """An objective that trains the head of one name, which a model gets where it lacks it; by default its settings'."""

    def __init__(self, head: str | None = None, word_dropout: float = 0.0) -> None:
        self.head: str = self.Settings.model_fields["head"].default if head is None else head
        self.word_dropout = word_dropout
        self.hiding = Masking(word_dropout, whole_words=True, masked=1.0, random=0.0)

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Refuse a model without the head, and word dropout without a mask token.

        Raises:
            UsageError: there is no head of this name, or words are to be hidden and nothing hides them.
        """
        if self.word_dropout:
            self.hiding.bind(tokenizer, f"{label_of(type(self))} with word_dropout")
        if self.head not in spec.head_names:
            known = ", ".join(spec.head_names) or "none"
            message = f"the objective {label_of(type(self))} trains the head {self.head}, the model has {known}"
            raise UsageError(message, "name one it has")

    def prepare(self, batch: "Batch", rng: "torch.Generator") -> "Batch":
        """Hide words, where the recipe asks for it."""
        if not self.word_dropout:
            return batch
        hidden_BL, _ = self.hiding.draw(batch["ids"], real_tokens(batch), rng)
        return {**batch, "ids": hidden_BL}

    def evaluated(self) -> Objective:
        """Return the objective without word dropout."""
        plain = copy(self)
        plain.word_dropout = 0.0
        return plain

    def heads(self, spec: "ModelSpec") -> tuple[str, ...]:
        """Return the head."""
        return (self.head,)
