"""What fills a slot: projections, caps and clips as formulas, with their gradients."""

import pytest
import torch

from orrery.inspection.attribution.frozen import frozen
from orrery.nn.elementwise import Activation, Clamp, LayerScale, Projection, SoftCap
from orrery.nn.residual import Chain
from orrery.nn.stochastic_depth import StochasticDepth

X = 3 * torch.randn(2, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_a_soft_cap_bounds_and_leaves_small_numbers_alone():
    cap = SoftCap.Spec(cap=2.0).build(8)
    torch.testing.assert_close(cap(X), 2 * torch.tanh(X / 2), rtol=0, atol=0)
    assert cap(100 * X).abs().max() <= 2
    torch.testing.assert_close(cap(1e-4 * X), 1e-4 * X, rtol=0, atol=1e-9)  # x^3 / 12 is lost
    assert torch.autograd.gradcheck(cap, X.clone().requires_grad_())


def test_a_clip_bounds_and_leaves_the_rest_alone():
    clip = Clamp.Spec(bound=1.5).build(8)
    inside = X.abs() <= 1.5
    assert torch.equal(clip(X)[inside], X[inside])
    assert torch.equal(clip(X)[~inside], 1.5 * X[~inside].sign())
    assert torch.autograd.gradcheck(clip, X.clone().requires_grad_())


@pytest.mark.parametrize("bias", [True, False])
def test_a_chain_follows_the_width_of_its_projection(bias):
    spec = Chain.Spec(parts=(Projection.Spec(width=3, bias=bias), Activation.Spec(activation="tanh")))
    chain = spec.build(8).double()
    linear = chain[0].linear
    expected = X @ linear.weight.T + (linear.bias if bias else 0)
    torch.testing.assert_close(chain(X), expected.tanh(), rtol=0, atol=1e-12)
    assert spec.out_width(8) == 3


def test_a_layer_scale_multiplies_each_channel():
    scale = LayerScale.Spec(initial=0.5).build(8).double()
    torch.testing.assert_close(scale(X), 0.5 * X, rtol=0, atol=0)
    torch.nn.init.normal_(scale.gain)
    for channel in range(8):
        torch.testing.assert_close(scale(X)[..., channel], scale.gain[channel] * X[..., channel], rtol=0, atol=0)
    assert torch.autograd.gradcheck(scale, X.clone().requires_grad_())


def test_parts_go_through_a_layer_scale_and_what_is_left_out_in_training_alone():
    chain = Chain.Spec(parts=(LayerScale.Spec(initial=0.5), StochasticDepth.Spec(rate=0.3))).build(8).double().eval()
    torch.nn.init.normal_(chain[0].gain)
    through = frozen(chain, X)
    assert through.constant is None
    torch.testing.assert_close(through(X), chain(X), rtol=0, atol=1e-15)
    torch.testing.assert_close(through.linear(X[:1]) + through.linear(X[1:]), chain(X[:1] + X[1:]), rtol=0, atol=1e-14)
