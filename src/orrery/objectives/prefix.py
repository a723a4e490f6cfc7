"""Prefix language modelling: a text from its beginning, which is read in both directions."""

from typing import TYPE_CHECKING, Any, Literal

from orrery.errors import UsageError
from orrery.objectives import Objective, Term, register
from orrery.objectives._balance import Balance
from orrery.objectives._next_token import counts, loss
from orrery.objectives._real import real_tokens
from orrery.schema.numbers import NotNegative
from orrery.schema.section import Section

if TYPE_CHECKING:
    import torch

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer


@register
class PrefixLanguageModel(Objective):
    """``-log p(x_t | x_<t)`` in nats for ``t >= p``, where the first ``p`` tokens all see each other.

    ``p`` is drawn for each row, from 1 to its tokens less one, all equally likely. Raffel et al. 2020, section 3.2 and
    figure 4; Dong et al. 2019. A batch has ``ids`` and ``targets`` [B L]; ``prepare`` adds ``prefix`` [B] and takes the
    targets inside the prefix away, which the model has seen.

    Differs from Raffel et al., who feed the prefix to the model as a source of its own.
    """

    class Settings(Section):
        """Prediction of what follows a beginning; the decoder needs a mask with a prefix (model.mask: prefix).

        ``balance`` is the weight of the load of experts.
        """

        kind: Literal["prefix"] = "prefix"
        balance: NotNegative = 0.0

    needs = ("ids", "targets")
    makes = ("prefix", "targets")
    metrics = ("loss", "perplexity")
    each_token = True

    def __init__(self, balance: float = 0.0) -> None:
        self.balance = Balance(balance)
        self.reports = self.balance.reports

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Refuse what is no decoder whose masks have a prefix, and to balance one without experts.

        Raises:
            UsageError: the model is none, or has no mixture to balance.
        """
        from orrery.nn.masks import Need

        if not spec.writes or spec.reads_source:
            raise UsageError("the objective prefix needs a decoder, this model is none", "name a decoder's family")
        if not any(Need.PREFIX in mask.needs for mask in spec.answering.masks.values()):
            hint = "model.mask: prefix gives a decoder such a mask"
            raise UsageError("the objective prefix needs a mask with a prefix, and the model's are others", hint)
        self.balance.bind(spec)

    def prepare(self, batch: "Batch", rng: "torch.Generator") -> "Batch":
        """Draw the length of each prefix.

        Raises:
            UsageError: the rows are packed, and a row has one prefix.
        """
        import torch

        from orrery.nn.cross_entropy import IGNORED

        if "documents" in batch:
            hint = "batches.kind: crops or padded"
            raise UsageError("the objective prefix draws one prefix a row, and packed rows have several texts", hint)
        lengths_B = real_tokens(batch).sum(1)
        drawn_B = torch.rand(lengths_B.shape, generator=rng, dtype=torch.float64)
        prefix_B = 1 + (drawn_B * (lengths_B - 1).clamp(min=1)).long()
        seen_BL = torch.arange(batch["ids"].shape[1]) < prefix_B[:, None] - 1
        return {**batch, "prefix": prefix_B, "targets": batch["targets"].masked_fill(seen_BL, IGNORED)}

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the targets that are not ignored, and the balance once."""
        return {**counts(batch), **self.balance.counts()}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed cross entropy of the main head, the number of targets, and the balance of experts."""
        return loss(model, batch, 0.0, self.balance)

    def evaluated(self) -> "PrefixLanguageModel":
        """Return the objective without balance."""
        return PrefixLanguageModel()
