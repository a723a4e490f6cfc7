"""Routers: which experts a token is sent to, and with which weight.

A router computes in float32 at least, whatever the model's dtype: a rounded score sends a token to another expert
("selective precision", Fedus et al. 2021, section 2.4).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, final

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.attention.operands import unseen
from orrery.nn.feedforward.routing import Routing
from orrery.nn.spec import ModuleSpec, Value, spec


@spec
class ExpertSelection(Value):
    """A rule that chooses experts by their scores."""

    chosen: int

    @abstractmethod
    def reach(self, experts: int) -> int:
        """Return how many of so many experts one token may be sent to.

        Raises:
            UsageError: the rule cannot divide so many experts.
        """

    @abstractmethod
    def of(self, scores_NX: Float[Tensor, "N X"]) -> Int[Tensor, "N E"]:
        """Return the numbers of the chosen experts."""


@spec
class TopK(ExpertSelection):
    """The ``chosen`` best."""

    def reach(self, experts: int) -> int:
        """Return the number of experts: every one can be chosen."""
        return experts

    def of(self, scores_NX: Float[Tensor, "N X"]) -> Int[Tensor, "N E"]:
        """Return the experts of the highest scores."""
        return scores_NX.topk(self.chosen, dim=-1, sorted=False).indices


@spec
class GroupLimited(ExpertSelection):
    """The ``chosen`` best among the experts of the best groups (DeepSeek-V2, section 2.2.2).

    A group's score is the sum of those of its ``best_per_group`` best experts: one in DeepSeek-V2, two in V3.
    """

    groups: int
    kept: int
    best_per_group: int = 1

    def reach(self, experts: int) -> int:
        """Return the experts of the kept groups."""
        size, remainder = divmod(experts, self.groups)
        if remainder or self.best_per_group > size:
            raise UsageError(
                f"{experts} experts do not make {self.groups} equal groups of at least {self.best_per_group}",
                "choose a number of groups that divides the number of experts",
            )
        return min(self.kept, self.groups) * size

    def of(self, scores_NX: Float[Tensor, "N X"]) -> Int[Tensor, "N E"]:
        """Take the best of the best groups."""
        scores_NGX = scores_NX.unflatten(-1, (self.groups, -1))
        group_NG = scores_NGX.topk(self.best_per_group, dim=-1).values.sum(-1)
        best_NG = torch.zeros_like(group_NG, dtype=torch.bool)
        best_NG.scatter_(1, group_NG.topk(self.kept, dim=-1).indices, True)
        allowed_NX = best_NG[..., None].expand_as(scores_NGX).flatten(1)
        return scores_NX.masked_fill(~allowed_NX, float("-inf")).topk(self.chosen, dim=-1, sorted=False).indices


@spec
class GateNormalisation(Value):
    """What the scores of the chosen experts become."""

    scale: float = 1.0

    @abstractmethod
    def of(self, scores_NE: Float[Tensor, "N E"]) -> Float[Tensor, "N E"]:
        """Return the weights."""


@spec
class RawScores(GateNormalisation):
    """``scale * score``."""

    def of(self, scores_NE: Float[Tensor, "N E"]) -> Float[Tensor, "N E"]:
        """Return the scores times the factor."""
        return scores_NE * self.scale


@spec
class Normalised(GateNormalisation):
    """``scale * score / (sum of the chosen scores + eps)``."""

    eps: float = 0.0

    def of(self, scores_NE: Float[Tensor, "N E"]) -> Float[Tensor, "N E"]:
        """Let the weights of a token sum to ``scale``."""
        return scores_NE / (scores_NE.sum(-1, keepdim=True) + self.eps) * self.scale


@spec
class AtLeast(GateNormalisation):
    """``scale * score / max(sum of the chosen scores, least)`` (ERNIE 4.5)."""

    least: float = 0.0

    def of(self, scores_NE: Float[Tensor, "N E"]) -> Float[Tensor, "N E"]:
        """Let the weights of a token sum to ``scale``, unless they are tiny."""
        return scores_NE / scores_NE.sum(-1, keepdim=True).clamp(min=self.least) * self.scale


@spec
class RouterSpec(ModuleSpec):
    """A router: how many experts there are, who is chosen, and how the chosen are weighed."""

    experts: int
    choice: ExpertSelection
    weighing: GateNormalisation = RawScores()


class SoftmaxRouter(nn.Module):
    """``scores = softmax(W x)``; the chosen are weighed by their scores (Mixtral, Qwen, DeepSeek-V2, gpt-oss).

    Shapes: ``[N, D]`` to choices and weights ``[N, chosen]``.
    """

    multiplies_itself: ClassVar[frozenset[str]] = frozenset({"linear"})

    @spec
    class Spec(RouterSpec):
        """Whether the logits have a bias."""

        bias: bool = False

        def build(self, width: int) -> "SoftmaxRouter":
            """Return the router."""
            return SoftmaxRouter(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        _check(spec.choice, spec.experts)
        self.linear = nn.Linear(width, spec.experts, bias=spec.bias)
        self.choice, self.weighing = spec.choice, spec.weighing

    def forward(self, x_ND: Float[Tensor, "N D"], show: Callable[[str, Tensor], Tensor] = unseen) -> Routing:
        """Return the chosen experts of each token and their weights; ``show`` sees the logits, and may replace them."""
        logits_NX = show("router_logits", _logits(self.linear, x_ND))
        scores_NX = logits_NX.softmax(-1)
        chosen_NE = self.choice.of(scores_NX)
        return Routing(logits_NX, scores_NX, chosen_NE, self.weighing.of(scores_NX.gather(1, chosen_NE)))


class _CorrectedRouter(nn.Module, ABC):
    """Experts chosen by ``scores + correction`` and weighed by ``scores``.

    The correction balances the load without a loss: it is raised for idle experts and lowered for busy ones.
    Differs from the papers: nothing here moves it. It comes from a file, has no gradient, and is zero in a new model.
    """

    multiplies_itself: ClassVar[frozenset[str]] = frozenset({"linear"})

    def __init__(self, spec: RouterSpec, width: int) -> None:
        super().__init__()
        _check(spec.choice, spec.experts)
        self.linear = nn.Linear(width, spec.experts, bias=False)
        self.correction = nn.Parameter(torch.zeros(spec.experts), requires_grad=False)
        self.choice, self.weighing = spec.choice, spec.weighing

    @abstractmethod
    def scores(self, logits_NX: Float[Tensor, "N X"]) -> Float[Tensor, "N X"]:
        """Return the scores of all experts."""

    def forward(self, x_ND: Float[Tensor, "N D"], show: Callable[[str, Tensor], Tensor] = unseen) -> Routing:
        """Return the chosen experts of each token and their weights; ``show`` sees the logits, and may replace them."""
        logits_NX = show("router_logits", _logits(self.linear, x_ND))
        scores_NX = self.scores(logits_NX)
        chosen_NE = self.choice.of(scores_NX + self.correction)
        return Routing(logits_NX, scores_NX, chosen_NE, self.weighing.of(scores_NX.gather(1, chosen_NE)))


@final
class SigmoidRouter(_CorrectedRouter):
    """``scores = sigmoid(W x)``, chosen with a correction (DeepSeek-V3, 2.1.2).

    Shapes: ``[N, D]`` to choices and weights ``[N, chosen]``.
    """

    @spec
    class Spec(RouterSpec):
        """Nothing of its own to say."""

        def build(self, width: int) -> "SigmoidRouter":
            """Return the router."""
            return SigmoidRouter(self, width)

    def scores(self, logits_NX: Float[Tensor, "N X"]) -> Float[Tensor, "N X"]:
        """Return each expert's own score."""
        return logits_NX.sigmoid()


@final
class CorrectedSoftmaxRouter(_CorrectedRouter):
    """``scores = softmax(W x)``, chosen with a correction (ERNIE 4.5).

    Shapes: ``[N, D]`` to choices and weights ``[N, chosen]``.
    """

    @spec
    class Spec(RouterSpec):
        """Nothing of its own to say."""

        def build(self, width: int) -> "CorrectedSoftmaxRouter":
            """Return the router."""
            return CorrectedSoftmaxRouter(self, width)

    def scores(self, logits_NX: Float[Tensor, "N X"]) -> Float[Tensor, "N X"]:
        """Return the experts' shares."""
        return logits_NX.softmax(-1)


class SparseMixerRouter(nn.Module):
    """The best expert, then the best of the others, each weighed by a softmax over those that come near it.

    ``j`` is near the best ``i`` where ``(s_i - s_j) / max(|s_j|, s_i) <= 2 jitter``, with ``s = W x`` (SparseMixer, Liu
    et al. 2023; Phi-3.5 MoE). Differs from the paper: in training too the best are taken, none is drawn, and gradients
    are those of the two weights. Shapes: ``[N, D]`` to choices and weights ``[N, 2]``.
    """

    multiplies_itself: ClassVar[frozenset[str]] = frozenset({"linear"})

    @spec
    class Spec(RouterSpec):
        """How far from the best an expert may be to count in its softmax."""

        jitter: float = 0.01

        def build(self, width: int) -> "SparseMixerRouter":
            """Return the router."""
            return SparseMixerRouter(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        _check(spec.choice, spec.experts)
        self.linear = nn.Linear(width, spec.experts, bias=False)
        self.jitter, self.weighing = spec.jitter, spec.weighing

    def forward(self, x_ND: Float[Tensor, "N D"], show: Callable[[str, Tensor], Tensor] = unseen) -> Routing:
        """Return the two experts of each token and their weights; ``show`` sees the logits, and may replace them."""
        logits_NX = show("router_logits", _logits(self.linear, x_ND))
        first_N1, weight_N1 = self._best(logits_NX, logits_NX)
        second_N1, other_N1 = self._best(logits_NX.scatter(1, first_N1, float("-inf")), logits_NX)
        chosen_NE, weights_NE = torch.cat([first_N1, second_N1], 1), torch.cat([weight_N1, other_N1], 1)
        return Routing(logits_NX, logits_NX.softmax(-1), chosen_NE, self.weighing.of(weights_NE))

    def _best(self, left_NX: Tensor, logits_NX: Tensor) -> tuple[Tensor, Tensor]:
        """Return the best of the experts that are left and its weight."""
        best_N1, expert_N1 = left_NX.detach().max(-1, keepdim=True)
        far_NX = (best_N1 - logits_NX) / logits_NX.abs().clamp(min=best_N1) > 2 * self.jitter
        return expert_N1, left_NX.masked_fill(far_NX, float("-inf")).softmax(-1).gather(1, expert_N1)


def _logits(linear: nn.Linear, x_ND: Tensor) -> Tensor:
    """Score the experts in float32 at least, under autocast too."""
    wide = torch.promote_types(x_ND.dtype, torch.float32)
    with torch.autocast(x_ND.device.type, enabled=False):
        bias = None if linear.bias is None else linear.bias.to(wide)
        return F.linear(x_ND.to(wide), linear.weight.to(wide), bias)


def _check(choice: ExpertSelection, experts: int) -> None:
    """Refuse a rule that cannot choose so many experts."""
    reach = choice.reach(experts)
    if not 1 <= choice.chosen <= reach:
        raise UsageError(
            f"a token cannot be sent to {choice.chosen} of the {reach} experts that it may reach",
            "choose fewer experts a token, or keep more groups",
        )
