"""What the objectives over pairs of replies share: one cost a pair, and what is told of the rewards behind it."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from orrery.objectives import Objective, Term
from orrery.objectives._replies import AgainstReference, OnReplies, reply_lengths, token_log_probabilities

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jaxtyping import Float
    from torch import Tensor

    from orrery.models.inputs import Batch

TERM = "preference"
CHOSEN, REJECTED, RIGHT, LIKELIER, KL = "reward_chosen", "reward_rejected", "reward_accuracy", "likelier", "kl"
"""What is told beside the loss, each a term of weight 0."""

REWARDS = ("reward_accuracy", "reward_margin", "reward_chosen", "reward_rejected")
"""The metrics of whatever gives rewards to the two sides of a pair."""


class OverPairs(Objective, ABC):
    """An objective whose loss is one cost for each pair, the mean over pairs."""

    reports: tuple[str, ...] = (RIGHT, CHOSEN, REJECTED)

    def counts(self, batch: "Batch") -> "dict[str, int]":
        """Count the pairs."""
        return dict.fromkeys((TERM, CHOSEN, REJECTED, RIGHT), len(batch["ids"]))


class WithoutReference(OverPairs, OnReplies, ABC):
    """An objective over pairs of replies that needs the model alone.

    The reward of a reply is ``beta / |y| * log p(y | x)``.
    """

    metrics = ("loss", *REWARDS, "likelihood_accuracy")
    beta: float

    def counts(self, batch: "Batch") -> "dict[str, int]":
        """Count the pairs."""
        return {**super().counts(batch), LIKELIER: len(batch["ids"])}

    def loss(self, model: Any, batch: "Batch") -> "dict[str, Term]":
        """Return the summed cost of the pairs, and what is told."""
        log_p_B2 = token_log_probabilities(model, batch).sum(-1)
        mean_B2 = log_p_B2 / reply_lengths(batch)
        return {
            TERM: Term(self.cost(mean_B2).sum(), len(mean_B2)),
            **told(self.beta * mean_B2),
            **likelier(log_p_B2),
        }

    @abstractmethod
    def cost(self, mean_B2: "Float[Tensor, 'B 2']") -> "Float[Tensor, ' B']":
        """Return the cost of each pair of the mean log probabilities of its replies' tokens."""


class WithReference(OverPairs, AgainstReference, ABC):
    """An objective over pairs of replies and the log ratios ``h(y) = log p(y | x) - log p_ref(y | x)``.

    The reward of a reply is ``beta h(y)`` (Rafailov et al. 2023, equation 5 without the term that depends on the prompt
    alone).
    """

    metrics = ("loss", *REWARDS, "likelihood_accuracy", "kl")
    reports = (RIGHT, CHOSEN, REJECTED, KL)
    beta: float

    def counts(self, batch: "Batch") -> "dict[str, int]":
        """Count the pairs, and the tokens of their replies."""
        return {**super().counts(batch), LIKELIER: len(batch["ids"]), KL: int(reply_lengths(batch).sum())}

    def loss(self, model: Any, batch: "Batch") -> "dict[str, Term]":
        """Return the summed cost of the pairs, and what is told."""
        log_p_B2L = token_log_probabilities(model, batch)
        ratios_B2L = log_p_B2L - token_log_probabilities(self.reference, batch)
        lengths_B2, h_B2 = reply_lengths(batch), ratios_B2L.sum(-1)
        return {
            TERM: Term(self.cost(h_B2, lengths_B2).sum(), len(h_B2)),
            **told(self.rewards(h_B2, lengths_B2)),
            **likelier(log_p_B2L.sum(-1)),
            **divergence(ratios_B2L, lengths_B2),
        }

    @abstractmethod
    def cost(self, h_B2: "Float[Tensor, 'B 2']", lengths_B2: "Tensor") -> "Float[Tensor, ' B']":
        """Return the cost of each pair of the log ratios of its replies and their lengths."""

    def rewards(self, h_B2: "Float[Tensor, 'B 2']", lengths_B2: "Tensor") -> "Float[Tensor, 'B 2']":
        """Return the rewards of the replies."""
        return self.beta * h_B2


def told(rewards_B2: "Float[Tensor, 'B 2']") -> "Mapping[str, Term]":
    """Return the rewards of both sides, and how often the chosen one has more; a tie is not right."""
    chosen_B, rejected_B = rewards_B2.detach().unbind(-1)
    totals = {CHOSEN: chosen_B.sum(), REJECTED: rejected_B.sum(), RIGHT: (chosen_B > rejected_B).sum()}
    return {name: Term(total, len(rewards_B2), weight=0.0) for name, total in totals.items()}


def likelier(log_p_B2: "Float[Tensor, 'B 2']") -> "Mapping[str, Term]":
    """Return how often the chosen reply is likelier than the rejected one, all tokens of each together."""
    chosen_B, rejected_B = log_p_B2.detach().unbind(-1)
    return {LIKELIER: Term((chosen_B > rejected_B).sum(), len(log_p_B2), weight=0.0)}


def divergence(ratios: "Float[Tensor, '*rows L']", lengths: "Tensor") -> "Mapping[str, Term]":
    """Return ``sum of 1/2 (log p(x_t) - log p_ref(x_t))^2`` over the tokens of the replies, the estimator k2.

    Schulman 2020, "Approximating KL divergence": near each other the KL of two distributions is this mean under either
    of them. Differs from an estimate over what the model writes: the tokens are those of the data.
    """
    return {KL: Term(ratios.detach().square().sum() / 2, lengths.sum(), weight=0.0)}


def sigmoid_cost(margin_B: "Float[Tensor, ' B']", label_smoothing: float = 0.0) -> "Float[Tensor, ' B']":
    """Return ``-(1 - e) log s(m) - e log s(-m)`` with the logistic function ``s``, in nats.

    ``e`` is how often a label is the wrong way round (Mitchell 2023, conservative DPO).
    """
    from torch.nn.functional import logsigmoid

    cost: Tensor = -(1 - label_smoothing) * logsigmoid(margin_B) - label_smoothing * logsigmoid(-margin_B)
    return cost


def difference(sides_B2: "Float[Tensor, 'B 2']") -> "Float[Tensor, ' B']":
    """Return chosen minus rejected."""
    chosen_B, rejected_B = sides_B2.unbind(-1)
    return chosen_B - rejected_B
