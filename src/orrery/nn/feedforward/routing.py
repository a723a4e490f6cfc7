"""What routers decided, and how evenly: the balance loss of a call."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from orrery.nn.rehearsal import rehearsing


@dataclass(frozen=True)
class Routing:
    """What a router decided: logits and probabilities of all experts, the chosen ones and their weights."""

    logits_NX: Float[Tensor, "N X"]
    scores_NX: Float[Tensor, "N X"]
    chosen_NE: Int[Tensor, "N E"]
    weights_NE: Float[Tensor, "N E"]

    def counts(self) -> Int[Tensor, "X"]:
        """Return how many tokens each expert received."""
        return torch.bincount(self.chosen_NE.flatten(), minlength=self.scores_NX.shape[1])

    def counts_on_host(self) -> list[int]:
        """Return the same as numbers that the host knows; a rehearsal sends equally many to all, to within one."""
        if not rehearsing():
            return list(self.counts().tolist())
        choices, experts = self.chosen_NE.numel(), self.scores_NX.shape[1]
        return [choices // experts + int(expert < choices % experts) for expert in range(experts)]

    def load(self) -> Float[Tensor, "X"]:
        """Return the share of all choices that each expert received."""
        return self.counts().to(self.scores_NX.dtype) / self.chosen_NE.numel()

    def shares(self) -> Float[Tensor, "N X"]:
        """Return the scores of each token, brought to a sum of one where they are none (sigmoid)."""
        return self.scores_NX / self.scores_NX.sum(-1, keepdim=True)


def balance(routings: Sequence[Routing], real_BL: Bool[Tensor, "B L"]) -> Float[Tensor, ""]:
    """Return ``X sum_e f_e P_e``, means over the real tokens of all layers together; even is E, the experts a token.

    ``f_e`` is how many times a token was sent to expert ``e``, ``P_e`` the score of ``e``, whose gradient alone flows.
    It is the ``load_balancing_loss_func`` of transformers. Differs from Fedus et al. 2021, equations 4 to 6, who have
    such a product for each layer and add them up, and one expert a token. Scores that do not sum to one are brought to
    that first (DeepSeek-V3, equation 19, which is a loss of each sequence), and chosen is what the router chose, by
    groups and corrections too.
    """
    shares_X = routings[0].scores_NX.new_zeros(routings[0].scores_NX.shape[1])
    times_X = torch.zeros_like(shares_X)
    real_N1 = real_BL.flatten()[:, None].to(shares_X.dtype)
    for routing in routings:
        shares_X = shares_X + (routing.shares() * real_N1).sum(0)
        times_X = times_X.scatter_add(0, routing.chosen_NE.flatten(), real_N1.expand_as(routing.chosen_NE).flatten())
    tokens = (real_N1.sum() * len(routings)).clamp(min=1)
    return len(shares_X) * (times_X / tokens * (shares_X / tokens)).sum()
