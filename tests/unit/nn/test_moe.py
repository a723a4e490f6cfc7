"""Mixtures of experts: equal to the dense sum, bit for bit to the plain loop, and open to a recorder."""

from dataclasses import replace

import pytest
import torch

from orrery.errors import UsageError
from orrery.nn.attention.kernels import eager
from orrery.nn.cache.contract import UNCACHED, Layer
from orrery.nn.context import Context
from orrery.nn.feedforward.clamped import ClampedGatedMLP
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.feedforward.mlp import MLP
from orrery.nn.feedforward.moe import MoE
from orrery.nn.feedforward.routers import (
    CorrectedSoftmaxRouter,
    GroupLimited,
    Normalised,
    SigmoidRouter,
    SoftmaxRouter,
    SparseMixerRouter,
    TopK,
)
from orrery.nn.residual import Gated, give_role

WIDTH, EXPERTS = 6, 8
X = torch.randn(3, 5, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
CONTEXT = Context(
    positions={}, masks={}, cache=UNCACHED, kernel=eager, layer=Layer(0, "blocks.0", UNCACHED)
)  # fmt: skip
ROUTERS = {
    "softmax": SoftmaxRouter.Spec(experts=EXPERTS, choice=TopK(chosen=2), weighing=Normalised()),
    "sigmoid": SigmoidRouter.Spec(experts=EXPERTS, choice=GroupLimited(chosen=3, groups=4, kept=2)),
}
EXPERT_KINDS = {"gated": GatedMLP.Spec(hidden=4), "mlp": MLP.Spec(hidden=4), "clamped": ClampedGatedMLP.Spec(hidden=4)}


def built(spec):
    module = spec.build(WIDTH).double()
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
    give_role(module, "feed_forward")
    return module


def mixture(router="softmax", expert="gated", **more):
    return built(MoE.Spec(expert=EXPERT_KINDS[expert], router=ROUTERS[router], **more))


@pytest.mark.parametrize("expert", EXPERT_KINDS)
@pytest.mark.parametrize("router", ROUTERS)
def test_equals_the_dense_sum_over_all_experts(router, expert):
    """Every expert answers every token; the weight of an expert that was not chosen is zero."""
    module = mixture(router, expert)
    routing = module.router(X.flatten(0, 1))
    weights_NX = torch.zeros(15, EXPERTS, dtype=torch.float64).scatter(1, routing.chosen_NE, routing.weights_NE)
    answers_XND = torch.stack([each(X, CONTEXT).flatten(0, 1) for each in module.experts])
    expected = torch.einsum("nx,xnd->nd", weights_NX, answers_XND).view_as(X)
    torch.testing.assert_close(module(X, CONTEXT), expected, rtol=0, atol=1e-12)


def test_equals_the_loop_over_the_experts_in_every_bit():
    module = mixture()
    x_ND = X.flatten(0, 1)
    routing = module.router(x_ND)
    expected = torch.zeros_like(x_ND)
    for number, expert in enumerate(module.experts):
        row, rank = torch.where(routing.chosen_NE == number)
        expected.index_add_(0, row, expert(x_ND[row][None], CONTEXT)[0] * routing.weights_NE[row, rank, None])
    assert torch.equal(module(X, CONTEXT), expected.view_as(X))


def test_shared_experts_see_every_token():
    module = mixture(shared=(GatedMLP.Spec(hidden=5), Gated.Spec(branch=GatedMLP.Spec(hidden=3))))
    plain, switched = module.shared
    routed = module.mix(X.flatten(0, 1), module.router(X.flatten(0, 1)), CONTEXT).view_as(X)
    share = torch.sigmoid(X @ switched.gate.weight.mT)
    expected = routed + plain(X, CONTEXT) + share * switched.branch(X, CONTEXT)
    torch.testing.assert_close(module(X, CONTEXT), expected, rtol=0, atol=1e-12)


def test_an_expert_that_no_token_chose_is_not_called_and_has_no_gradient():
    module, calls = mixture(), []
    for number, expert in enumerate(module.experts):
        expert.register_forward_hook(lambda *args, number=number: calls.append(number))
    one = X[:1, :1]
    module(one, CONTEXT).sum().backward()
    chosen = sorted(module.router(one.flatten(0, 1)).chosen_NE[0].tolist())
    assert calls == chosen
    hit = [number for number, expert in enumerate(module.experts) if expert.up.weight.grad is not None]
    assert hit == chosen


def test_no_token_is_no_work():
    assert mixture()(X[:0], CONTEXT).shape == (0, 5, WIDTH)


def test_gradients_reach_x_router_and_experts():
    module = mixture("sigmoid", shared=(GatedMLP.Spec(hidden=3),))
    x = X[:1, :3].clone().requires_grad_()
    weights = [p for p in module.parameters() if p.requires_grad]
    assert torch.autograd.gradcheck(lambda x, *_: module(x, CONTEXT), (x, *weights))


@torch.no_grad()
def test_a_recorder_sees_the_load_and_not_the_inside_of_a_routed_expert():
    seen = {}
    ctx = replace(CONTEXT, taps=lambda key, value: seen.setdefault(key, value))
    module = mixture(shared=(Gated.Spec(branch=GatedMLP.Spec(hidden=3)),))
    assert torch.equal(module(X, ctx), module(X, CONTEXT))
    load = seen["blocks.0.feed_forward.load"]
    counted = [sum(x in row for row in module.router(X.flatten(0, 1)).chosen_NE.tolist()) for x in range(EXPERTS)]
    assert (load * 30).round().tolist() == counted
    assert seen["blocks.0.feed_forward.router_logits"].shape == (3, 5, EXPERTS)
    assert {key for key in seen if "hidden" in key} == {"blocks.0.shared.0.hidden"}


@pytest.mark.parametrize("router", ROUTERS)
@torch.no_grad()
def test_an_edit_of_the_routers_logits_sends_a_token_to_other_experts(router):
    def edit(key, logits_BLX):
        if not key.endswith("router_logits"):
            return logits_BLX
        logits_BLX = logits_BLX.clone()
        logits_BLX[0, 2] = torch.linspace(-9, 9, EXPERTS)
        return logits_BLX

    module = mixture(router)
    changed_BL = (module(X, replace(CONTEXT, taps=edit)) - module(X, CONTEXT)).abs().sum(-1)
    assert changed_BL.nonzero().tolist() == [[0, 2]]


def test_an_edit_of_the_load_is_refused():
    with pytest.raises(UsageError, match="shown, not edited"):
        mixture()(X, replace(CONTEXT, taps=lambda key, value: value.clone()))


def test_what_the_router_decided_goes_where_the_call_wants_it():
    module, routings = mixture(), []
    module(X, replace(CONTEXT, routings=routings))
    module(X, CONTEXT)
    assert len(routings) == 1
    assert torch.equal(routings[0].chosen_NE, module.router(X.flatten(0, 1)).chosen_NE)


def test_the_clamped_network_by_hand():
    """One channel, all weights one: g = min(9, 7), u = -7, so (u + 1) g sigmoid(1.702 g) = -42 to six digits."""
    module = ClampedGatedMLP.Spec(hidden=1, bias=False).build(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.fill_(1.0)
        module.up.weight.fill_(-1.0)
        for x, expected in ((9.0, -42.0), (1.0, 0.0), (-9.0, 8 * -9 / (1 + torch.tensor(1.702 * 9).exp().item()))):
            out = module(torch.full((1, 1, 1), x), CONTEXT).item()
            assert out == pytest.approx(expected, abs=3e-4)


@pytest.mark.parametrize("router", [SoftmaxRouter, SigmoidRouter, CorrectedSoftmaxRouter, SparseMixerRouter])
@pytest.mark.parametrize("choice", [TopK(chosen=5), TopK(chosen=0), GroupLimited(chosen=3, groups=2, kept=1)])
def test_no_router_sends_a_token_to_more_experts_than_it_reaches(router, choice):
    with pytest.raises(UsageError, match=f"cannot be sent to {choice.chosen} of the"):
        router.Spec(experts=4, choice=choice).build(WIDTH)
