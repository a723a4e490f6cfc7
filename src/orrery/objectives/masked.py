"""Masked language modelling: hidden tokens from those on both sides."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.objectives import Objective, Term, register
from orrery.objectives._masking import Masking, fill_in, masked_head
from orrery.objectives._real import real_tokens, with_real
from orrery.schema.numbers import Part
from orrery.schema.section import Section

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer

TERM = "masked"


@register
class MaskedLanguageModel(Objective):
    """``-log p(x_t | corrupted x)`` in nats, summed over the chosen tokens ``t``.

    Devlin et al. 2019, section 3.1; whole words as in their later code; drawn again in each step as in Liu et al. 2019,
    section 4.1. Padding and special tokens are never chosen. A batch has ``ids`` [B L], of which ``prepare`` makes the
    corrupted ones and ``targets``, -100 where nothing was chosen.
    """

    class Settings(Section):
        """Masked tokens; ``probability`` is the share that is chosen, ``whole_words`` chooses words and not tokens."""

        kind: Literal["masked"] = "masked"
        probability: Part = 0.15
        whole_words: bool = False

    needs = ("ids",)
    makes = ("ids", "targets")
    metrics = ("loss", "perplexity")

    def __init__(self, probability: float = 0.15, whole_words: bool = False) -> None:
        self.masking = Masking(probability, whole_words)
        self.head = TERM

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Make the tables over the vocabulary.

        Raises:
            UsageError: the model is no encoder with a head for masked tokens, or the tokenizer has no mask token.
        """
        self.head = masked_head(spec, TERM)
        self.masking.bind(tokenizer, TERM)

    def heads(self, spec: "ModelSpec") -> tuple[str, ...]:
        """Return the head for masked tokens."""
        return (masked_head(spec, TERM),)

    def prepare(self, batch: "Batch", rng: "torch.Generator") -> "Batch":
        """Choose tokens and hide them."""
        real_BL = real_tokens(batch)
        ids_BL, targets_BL = self.masking.draw(batch["ids"], real_BL, rng)
        return {**with_real(batch, real_BL), "ids": ids_BL, "targets": targets_BL}

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the chosen tokens."""
        from orrery.nn.cross_entropy import IGNORED

        return {TERM: int((batch["targets"] != IGNORED).sum())}

    def tokens_of(self, batch: "Batch", counts: Mapping[str, int]) -> int:
        """Return the tokens that are read: of rows without padding all."""
        return super().tokens_of(batch, counts) if "real" in batch else batch["ids"].numel()

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed cross entropy of the chosen tokens."""
        from orrery.nn.cross_entropy import IGNORED

        targets_BL = batch["targets"]

        def summed(head: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "Tensor":
            return fill_in(head, x_BLD, targets_BL)

        total = model(batch, {self.head: summed})[self.head]
        return {TERM: Term(total, (targets_BL != IGNORED).sum())}
