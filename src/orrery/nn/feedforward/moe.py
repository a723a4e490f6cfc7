"""Mixture of experts: every token is sent to a few of many feed-forward networks."""

from dataclasses import replace
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from orrery.errors import UsageError
from orrery.nn.context import Context
from orrery.nn.feedforward.routers import RouterSpec
from orrery.nn.feedforward.routing import Routing
from orrery.nn.parting import Grain
from orrery.nn.residual import give_role
from orrery.nn.spec import ModuleSpec, spec


class MoE(nn.Module):
    """``sum_e weight_e(x) expert_e(x) + sum_s shared_s(x)`` over the few experts that the router chooses.

    Shazeer et al. 2017; Fedus et al. 2021; shared experts, which see every token: Dai et al. 2024 (DeepSeekMoE). The
    taps show the router's logits and the load of the experts; what it decided goes to ``ctx.routings``, of which an
    objective with the key ``balance`` makes a loss.
    Differs from the papers: no expert has a capacity, so no token is dropped; padding is routed as well.
    Shapes: ``[B, L, D]`` unchanged; chosen and weights ``[B L, chosen]``.
    """

    parting: ClassVar = Grain.ROWS
    role: str = ""

    @spec
    class Spec(ModuleSpec):
        """What an expert is, who sends tokens to how many of them, and the experts that see every token."""

        expert: ModuleSpec
        router: RouterSpec
        shared: tuple[ModuleSpec, ...] = ()

        def build(self, width: int) -> "MoE":
            """Return the mixture."""
            return MoE(self, width)

    def __init__(self, spec: Spec, width: int) -> None:
        super().__init__()
        self.router, self.chosen = spec.router.build(width), spec.router.choice.chosen
        self.experts = nn.ModuleList(spec.expert.build(width) for _ in range(spec.router.experts))
        self.shared = nn.ModuleList(expert.build(width) for expert in spec.shared)
        for number, expert in enumerate(self.shared):
            give_role(expert, f"shared.{number}")

    def forward(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Float[Tensor, "B L D"]:
        """Route, let the experts answer, add up."""
        routing = self.route(x_BLD, ctx)
        if ctx.routings is not None:
            ctx.routings.append(routing)
        mixed_BLD = self.mix(x_BLD.flatten(0, 1), routing, ctx).view_as(x_BLD)
        for expert in self.shared:
            mixed_BLD = mixed_BLD + expert(x_BLD, ctx)
        return mixed_BLD

    def route(self, x_BLD: Float[Tensor, "B L D"], ctx: Context) -> Routing:
        """Choose experts for all tokens; the taps see the logits, ``[B, L, X]``, and the load.

        Raises:
            UsageError: an edit replaces the load, of which nothing is made.
        """

        def show(name: str, logits_NX: Tensor) -> Tensor:
            if ctx.taps is None:
                return logits_NX
            return ctx.tap(self, name, logits_NX.unflatten(0, x_BLD.shape[:2])).flatten(0, 1)

        routing: Routing = self.router(x_BLD.flatten(0, 1), show)
        if ctx.taps is not None:
            load_X = routing.load()
            if ctx.tap(self, "load", load_X) is not load_X:
                raise UsageError("the load of experts is shown, not edited", "edit their router_logits")
        return routing

    def mix(self, x_ND: Float[Tensor, "N D"], routing: Routing, ctx: Context) -> Float[Tensor, "N D"]:
        """Call each expert that was chosen once, with all of its tokens, and add up the weighed answers."""
        quiet = replace(ctx, taps=None)  # an expert sees other rows at every call: its insides have no fixed shape
        by_expert_M = routing.chosen_NE.flatten().argsort(stable=True)
        row_M, weight_M = by_expert_M // routing.chosen_NE.shape[1], routing.weights_NE.flatten()[by_expert_M]
        counts = routing.counts_on_host()
        mixed_ND = torch.zeros_like(x_ND)
        for expert, row_T, weight_T in zip(self.experts, row_M.split(counts), weight_M.split(counts), strict=True):
            if len(row_T):
                answer_TD = expert(x_ND[row_T][None], quiet)[0] * weight_T[:, None]
                mixed_ND.index_add_(0, row_T, answer_TD.to(x_ND.dtype))
        return mixed_ND
