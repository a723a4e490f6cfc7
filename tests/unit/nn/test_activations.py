"""Activations and feed-forward networks against their formulas."""

import math

import pytest
import torch

from orrery.errors import UsageError
from orrery.nn.activations import activation
from orrery.nn.attention.kernels import eager
from orrery.nn.cache.contract import UNCACHED
from orrery.nn.context import Context
from orrery.nn.feedforward.gated import GatedMLP
from orrery.nn.feedforward.mlp import MLP

X = torch.linspace(-4, 4, 33, dtype=torch.float64)
FORMULAS = {
    "relu": lambda x: x * (x > 0),
    "gelu": lambda x: x * (1 + torch.erf(x / math.sqrt(2))) / 2,
    "gelu_tanh": lambda x: x / 2 * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "silu": lambda x: x / (1 + torch.exp(-x)),
    "tanh": lambda x: 1 - 2 / (torch.exp(2 * x) + 1),
    "linear": lambda x: x,
}
CONTEXT = Context(positions={}, masks={}, cache=UNCACHED, kernel=eager)


@pytest.mark.parametrize("name", FORMULAS)
def test_formula(name):
    torch.testing.assert_close(activation(name)(X), FORMULAS[name](X), rtol=0, atol=1e-12)


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match="'swoosh'") as caught:
        activation("swoosh")
    assert "gelu_tanh" in caught.value.hint


def linear(x, layer):
    return x @ layer.weight.T + (0 if layer.bias is None else layer.bias)


@pytest.mark.parametrize("bias", [True, False])
def test_feed_forward_networks_are_their_formulas(bias):
    x = torch.randn(2, 3, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mlp = MLP.Spec(hidden=20, activation="relu", bias=bias).build(8).double()
    expected = linear(FORMULAS["relu"](linear(x, mlp.up)), mlp.down)
    torch.testing.assert_close(mlp(x, CONTEXT), expected, rtol=0, atol=1e-12)
    gated = GatedMLP.Spec(hidden=20, bias=bias).build(8).double()
    expected = linear(FORMULAS["silu"](linear(x, gated.gate)) * linear(x, gated.up), gated.down)
    torch.testing.assert_close(gated(x, CONTEXT), expected, rtol=0, atol=1e-12)


def test_xielu_by_hand():
    """``0.8 x^2 + x / 2`` above zero, ``0.8 (exp(x) - 1 - x) + x / 2`` below, as it begins."""
    learned = activation("xielu")
    activated = learned(torch.tensor([2.0, 0.0, -1.0]))
    assert activated.tolist() == pytest.approx([4.2, 0.0, 0.8 * math.exp(-1) - 0.5], abs=1e-5)
    assert activation("xielu") is not learned
    assert [name for name, part in learned.named_parameters() if part.requires_grad] == ["alpha_p", "alpha_n"]
