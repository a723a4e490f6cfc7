"""Mixture of experts: every token is sent to a few of many feed-forward networks."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from orrery.nn.context import Context
from orrery.nn.feedforward.routers import Routing
from orrery.nn.spec import ModuleSpec, spec


class NoExpert(nn.Module):
    """Zero: the empty slot of the shared expert. Shapes: unchanged."""

    @spec
    class Spec(ModuleSpec):
        """Nothing to say."""

        def build(self, width: int) -> "NoExpert":
            """Return the empty slot."""
            return NoExpert()

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Add nothing."""
        return torch.zeros_like(x_BLD)


class GatedExpert(nn.Module):
    """``sigmoid(gate x) * expert(x)``: a shared expert that each token turns up or down (Qwen 2 MoE).

    Shapes: ``[B, L, D]`` unchanged.
    """

    role: str = ""

    @spec
    class Spec(ModuleSpec):
        """The expert."""

        expert: ModuleSpec

        def build(self, width: int) -> "GatedExpert":
            """Return the expert and its gate."""
            return GatedExpert(self.expert.build(width), width)

    def __init__(self, expert: nn.Module, width: int) -> None:
        super().__init__()
        self.expert = expert
        self.switch = nn.Linear(width, 1, bias=False)

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Weigh the expert's answer."""
        return torch.sigmoid(self.switch(x_BLD)) * self.expert(x_BLD, ctx)


class MoE(nn.Module):
    """``shared(x) + sum_e weight_e(x) expert_e(x)`` over the few experts that the router chooses.

    Shazeer et al. 2017; Fedus et al. 2021; shared experts: Dai et al. 2024 (DeepSeekMoE). The router adds its
    balance loss to ``ctx.losses``; the taps show its logits, the chosen experts and their load.
    Shapes: ``[B, L, D]`` unchanged; chosen and weights ``[B L, chosen]``.
    """

    role: str = ""

    @spec
    class Spec(ModuleSpec):
        """How many experts, what they are, who sends tokens to them, and the expert that all tokens see."""

        experts: int
        expert: ModuleSpec
        router: ModuleSpec
        shared: ModuleSpec = NoExpert.Spec()

        def build(self, width: int) -> "MoE":
            """Return the mixture."""
            return MoE(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.router = spec.router.build(width)
        self.experts = nn.ModuleList(spec.expert.build(width) for _ in range(spec.experts))
        self.shared = spec.shared.build(width)

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Route, let the experts answer, add up."""
        x_ND = x_BLD.flatten(0, 1)
        routing: Routing = self.router(x_ND)
        ctx.tap(self, "router_logits", routing.logits_NX)
        ctx.tap(self, "load", load(routing.chosen_NE, len(self.experts)))
        if ctx.losses is not None:
            ctx.losses.append(routing.balance())
        quiet = replace(ctx, taps=None)  # an expert sees other rows at every call: its insides have no fixed shape
        mixed_ND = torch.zeros_like(x_ND)
        for number, expert in enumerate(self.experts):
            row, rank = torch.where(routing.chosen_NE == number)
            answer_MD = expert(x_ND[row][None], quiet)[0]
            mixed_ND = mixed_ND.index_add(0, row, (answer_MD * routing.weights_NE[row, rank, None]).to(x_ND.dtype))
        return mixed_ND.view_as(x_BLD) + self.shared(x_BLD, ctx)


def load(chosen_NE: Int[Tensor, "N E"], experts: int) -> Float[Tensor, "X"]:
    """Return the share of all choices that each expert received."""
    return torch.bincount(chosen_NE.flatten(), minlength=experts).float() / chosen_NE.numel()


def imbalance(load_X: Float[Tensor, "X"]) -> float:
    """Return the busiest expert's load over the mean load: one is perfect balance."""
    return float(load_X.max() * load_X.numel())
