"""Supervised fine-tuning on conversations: each token that the assistant wrote, from all before it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from orrery.errors import UsageError
from orrery.objectives import Objective, Term, register
from orrery.objectives._balance import Balance
from orrery.objectives._next_token import TERM, counts
from orrery.objectives._real import real_tokens
from orrery.schema.numbers import NotNegative
from orrery.schema.section import Section

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer


@register
class SupervisedFineTuning(Objective):
    """``-log p(x_t | x_<t)`` in nats, summed over the tokens ``x_t`` that the assistant wrote.

    Ouyang et al. 2022, section 3.5. A batch has what the model reads, and ``targets`` [B L], -100 where the next token
    is another's: the data say so by its place. The mean is over all tokens of all replies, so that a long reply weighs
    more than a short one, as in trl. With ``weights`` [B L] it is ``sum_t w_t (-log p(x_t | x_<t)) / sum_t w_t`` over
    the batch, as ``torch.nn.CrossEntropyLoss`` takes the mean under its weights of classes: a reply of weight 0 changes
    nothing, and one weight for all is none. trl and axolotl know whole weights alone.

    Equal to the objective causal on the same targets; the head works on the learnt positions alone, and the share of
    tokens that are predicted right is measured too.
    """

    class Settings(Section):
        """Prediction of what the assistant wrote; ``balance`` is the weight of the load of experts."""

        kind: Literal["sft"] = "sft"
        balance: NotNegative = 0.0

    needs = ("ids", "targets")
    metrics = ("loss", "perplexity", "accuracy")
    each_token = True

    def __init__(self, balance: float = 0.0) -> None:
        self.balance = Balance(balance)
        self.reports = self.balance.reports

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Refuse what is no decoder, and to balance one without experts.

        Raises:
            UsageError: the model does not continue what it reads, or has no mixture to balance.
        """
        if not spec.writes or spec.reads_source:
            raise UsageError("the objective sft needs a decoder, this model is none", "begin from a decoder")
        self.balance.bind(spec)

    def prepare(self, batch: "Batch", rng: "torch.Generator") -> "Batch":
        """Scale the weights, where there are some, so that their mean over the learnt tokens of the batch is 1."""
        from orrery.nn.cross_entropy import IGNORED

        if "weights" not in batch:
            return batch
        weights_BL, learnt_BL = batch["weights"], batch["targets"] != IGNORED
        # Here and not in the loss, which sees a part of the batch: the sum is then over the number of learnt tokens.
        return {**batch, "weights": weights_BL / weights_BL[learnt_BL].mean()} if learnt_BL.any() else batch

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the tokens that are learnt, and the balance once."""
        return {**counts(batch), **self.balance.counts()}

    def tokens_of(self, batch: "Batch", counts: Mapping[str, int]) -> int:
        """Return the tokens that are read: the model pays for these, learnt or not."""
        return int(real_tokens(batch).sum())

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed cross entropy of the learnt tokens, their number, and the balance of experts."""
        from orrery.nn.cross_entropy import IGNORED, head_cross_entropy, head_log_probabilities

        targets_BL = batch["targets"]
        learnt_BL = targets_BL != IGNORED

        def summed(head: "nn.Module", x_BLD: "Tensor", real_BL: "Tensor | None") -> "Tensor":
            if "weights" not in batch:
                return head_cross_entropy(head, x_BLD[learnt_BL], targets_BL[learnt_BL])
            logp_N = head_log_probabilities(head, x_BLD[learnt_BL], targets_BL[learnt_BL])
            return -(batch["weights"][learnt_BL].to(logp_N.dtype) * logp_N).sum()

        sums, more = self.balance.call(model, batch, {model.spec.head_names[0]: summed})
        (total,) = sums.values()
        return {TERM: Term(total, learnt_BL.sum()), **more}

    def evaluated(self) -> "SupervisedFineTuning":
        """Return the objective without balance."""
        return SupervisedFineTuning()
