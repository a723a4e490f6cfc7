"""Next-token prediction: each token from those before it."""

from typing import TYPE_CHECKING, Any, Literal

from orrery.errors import UsageError
from orrery.objectives import Objective, Term, register
from orrery.objectives._balance import Balance
from orrery.objectives._next_token import counts, loss
from orrery.schema.numbers import Fraction, NotNegative
from orrery.schema.section import Section

if TYPE_CHECKING:
    from orrery.models.inputs import Batch
    from orrery.models.model import ModelSpec
    from orrery.text.tokenizer import Tokenizer


@register
class CausalLanguageModel(Objective):
    """``-log p(x_t | x_<t)`` in nats, summed over the targets that are not -100.

    With label smoothing ``e`` the target distribution is ``q(v) = (1 - e) [v = target] + e / V`` and a token
    costs ``-sum_v q(v) log p(v)``. Szegedy et al. 2016, section 7; Vaswani et al. 2017, section 5.4 (``e =
    0.1``). A batch has what the model reads, and ``targets`` [B L]. ``balance`` is the weight of `Balance`.

    Differs from Vaswani et al.'s code, which shares ``e`` among the other ``V - 1`` tokens.
    """

    class Settings(Section):
        """Next-token prediction; label smoothing is a fraction, ``balance`` the weight of the load of experts."""

        kind: Literal["causal"] = "causal"
        label_smoothing: Fraction = 0.0
        balance: NotNegative = 0.0

    needs = ("ids", "targets")
    metrics = ("loss", "perplexity", "bpb")
    each_token = True
    own_rows = True

    def __init__(self, label_smoothing: float = 0.0, balance: float = 0.0) -> None:
        self.label_smoothing, self.balance = label_smoothing, Balance(balance)
        self.reports = self.balance.reports

    def bind(self, spec: "ModelSpec", tokenizer: "Tokenizer | None") -> None:
        """Refuse what is no decoder, and to balance one without experts.

        Raises:
            UsageError: the model does not continue what it reads, or has no mixture to balance.
        """
        if not spec.writes or spec.reads_source:
            hint = "name a decoder's family or spec; an encoder-decoder learns from data.pairs"
            raise UsageError("the objective causal needs a decoder, this model is none", hint)
        self.balance.bind(spec)

    def counts(self, batch: "Batch") -> dict[str, int]:
        """Count the targets that are not ignored, and the balance once."""
        return {**counts(batch), **self.balance.counts()}

    def loss(self, model: Any, batch: "Batch") -> dict[str, Term]:
        """Return the summed cross entropy of the main head, the number of targets, and the balance of experts."""
        return loss(model, batch, self.label_smoothing, self.balance)

    def evaluated(self) -> "CausalLanguageModel":
        """Return the objective without label smoothing and balance."""
        return CausalLanguageModel()
