"""Masked language modelling, and beside it a label for the two parts of a row."""

from abc import ABC
from typing import TYPE_CHECKING, Any, ClassVar

from orrery.errors import UsageError
from orrery.objectives import Term
from orrery.objectives._objective import Objective
from orrery.objectives.masked import TERM, MaskedLanguageModel

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer

HEAD = "next"


class PairLabel(Objective, ABC):
    """``masked - log p(y | row)``, two terms in nats: over the chosen tokens, and over the rows.

    Attributes:
        label: the field [B] that is 1 where the second part follows the first; published heads call that label 0.
    """

    label: ClassVar[str]
    metrics = ("loss",)

    def __init__(self, probability: float = 0.15, whole_words: bool = False) -> None:
        self.tokens = MaskedLanguageModel(probability, whole_words)

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Refuse a model without both heads.

        Raises:
            UsageError: it lacks one, or the tokenizer has no mask token.
        """
        from orrery.nn.heads import SequenceHead

        head = spec.heads.get(HEAD)
        if not isinstance(head, SequenceHead.Spec) or head.labels != 2:
            name = self.Settings.model_fields["kind"].default
            hint = "name model.family bert or albert, with model.config.architectures: [BertForPreTraining]"
            raise UsageError(f"the objective {name} needs a head next of two labels, and the model has none", hint)
        self.tokens.bind(spec, tokenizer)

    def heads(self, spec: "ModelSpec") -> tuple[str, ...]:
        """Return the head for masked tokens and that for the row."""
        return (*self.tokens.heads(spec), HEAD)

    def prepare(self, batch: "Batch", rng: "torch.Generator") -> "Batch":
        """Choose tokens and hide them."""
        return self.tokens.prepare(batch, rng)

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the chosen tokens, and the rows."""
        return {**self.tokens.counts(batch), HEAD: len(batch["ids"])}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return both terms, of one forward pass."""
        import torch

        from orrery.objectives._masking import fill_in

        counts, targets_BL = self.counts(batch), batch["targets"]
        labels_B = 1 - batch[self.label]

        def told(head: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "Tensor":
            logits_BN = head(x_BLD, real_BL)
            wide_BN = logits_BN if logits_BN.dtype == torch.float64 else logits_BN.float()
            return torch.nn.functional.cross_entropy(wide_BN, labels_B, reduction="sum")

        answers_of_heads = {self.tokens.head: lambda head, x_BLD, real_BL: fill_in(head, x_BLD, targets_BL), HEAD: told}
        sums = model(batch, answers_of_heads)
        return {TERM: Term(sums[self.tokens.head], counts[TERM]), HEAD: Term(sums[HEAD], counts[HEAD])}
