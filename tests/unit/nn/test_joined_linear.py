"""Layers that read one input are one product: what a model says and learns is what separate products give."""

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from orrery.families import names
from orrery.nn import joined_linear
from orrery.nn.joined_linear import JoinedLayers, join_layers
from parted import built, learned


@pytest.fixture
def widths(monkeypatch):
    """How many outputs each product of joined layers has, in order."""
    inner, seen = JoinedLayers._outputs, []

    def counted(self, x):
        outputs = inner(self, x)
        seen.append(sum(each.shape[-1] for each in outputs))
        return outputs

    monkeypatch.setattr(JoinedLayers, "_outputs", counted)
    return seen


def furthest(family, change=join_layers):
    """Return the largest difference of answers and gradients, by the largest number of each or 1."""
    model, batch = built(family)
    twin = copy.deepcopy(model)
    change(twin, "cpu")
    assert list(dict(twin.named_parameters())) == list(dict(model.named_parameters()))
    expected, found = learned(model, batch), learned(twin, batch)
    assert expected.keys() == found.keys()
    return max(float((expected[n] - found[n]).abs().max() / expected[n].abs().max().clamp(min=1)) for n in found)


@pytest.mark.parametrize(
    ("family", "bricks"),
    [("gpt2", ["qkv"]), ("llama", ["qkv", ("gate", "up")]), ("t5", ["qkv"])],
)
def test_a_brick_multiplies_its_input_once(family, bricks, widths):
    """GPT-2's q, k and v; LLaMA's with fewer heads, and both sides of its gate; of T5 those that look at themselves."""
    assert furthest(family) <= 1e-12
    expected = []
    for path, module in built(family)[0].named_modules():
        names = [brick for brick in bricks if hasattr(module, brick[0])]
        if names and "cross" not in path:
            expected.append(sum(len(getattr(module, name).weight) for name in names[0]))
    assert sorted(widths) == sorted(expected) != []


@pytest.mark.slow
@pytest.mark.parametrize("family", names())
def test_every_family_says_and_learns_the_same(family):
    assert furthest(family) <= 1e-12


def test_a_wrong_part_is_seen(monkeypatch):
    inner = JoinedLayers._outputs
    monkeypatch.setattr(JoinedLayers, "_outputs", lambda self, x: inner(self, x)[::-1])
    assert furthest("gpt2") > 1e-3


def test_passes_over_several_tokens_on_a_processor_are_joined(widths):
    model, batch = built("llama")
    join_layers(model, "cuda")
    learned(model, batch)
    join_layers(model, "cpu")
    learned(model, {"ids": batch["ids"][:, :1]})
    assert widths == []


def test_a_pass_without_a_gradient_computes_the_same_to_the_last_bit(widths):
    """PPO asks for it: the ratio of a rollout's first step is 1."""
    model, batch = built("llama")
    join_layers(model, "cpu")
    with torch.no_grad():
        scored = model(batch, heads=["language_model"])["language_model"]
    assert torch.equal(scored, model(batch, heads=["language_model"])["language_model"])
    assert len(widths) == 8


def test_wide_layers_and_layers_at_rest_stay_apart(widths, monkeypatch):
    monkeypatch.setattr(joined_linear, "NARROW", 24)
    model, batch = built("llama")
    join_layers(model, "cpu")
    learned(model, batch)
    assert widths == [40, 40]  # the sides of the gate have 20 outputs each, queries 32
    model, batch = built("llama")
    for parameter in model.parameters():
        parameter.requires_grad_(parameter.dim() == 1)
    widths.clear()
    join_layers(model, "cpu")
    learned(model, batch)
    assert widths == []


def test_layers_that_are_not_alike_stay_apart(widths):
    model, batch = built("llama")
    for module in model.modules():
        if hasattr(module, "k"):
            module.k.weight.requires_grad_(False)  # it rests while q and v learn
    join_layers(model, "cpu")
    learned(model, batch)
    assert widths == [80, 80]


def joined():
    layers = [torch.nn.Linear(3, width) for width in (2, 4)]
    join = JoinedLayers(layers)
    return join, layers, torch.randn(2, 5, 3, requires_grad=True)


def test_a_layer_called_with_another_input_or_out_of_turn_computes_its_own():
    join, (first, second), x = joined()
    other = torch.randn(2, 5, 3)
    for given, wanted in (((1, x), second), ((0, x), first), ((1, other), second), ((1, x), second), ((1, x), second)):
        layer = wanted
        assert torch.allclose(join(*given), F.linear(given[1], layer.weight, layer.bias), atol=1e-6)


def test_what_a_broken_call_held_is_in_no_copy():
    join, _, x = joined()
    join(0, x * 2)
    assert join.read is not None
    for other in (copy.deepcopy(join), pickle.loads(pickle.dumps(join))):
        assert other.read is None
        assert other.left == ()
        assert torch.equal(other.layers[1].weight, join.layers[1].weight)


def test_a_copy_of_a_model_computes_with_its_own_numbers():
    model, batch = built("gpt2")
    join_layers(model, "cpu")
    twin = copy.deepcopy(model)
    for parameter in twin.parameters():
        parameter.data.zero_()
    before = learned(model, batch)
    assert any(each.abs().max() > 0 for name, each in before.items() if name.startswith("says"))
    assert all(each.abs().max() == 0 for name, each in learned(twin, batch).items() if name.startswith("says"))


def test_recomputed_blocks_learn_the_same():
    def recompute(model, device):
        join_layers(model, device)
        for block in model.stack.blocks:
            inner = block.forward
            block.forward = lambda *given, inner=inner: checkpoint(inner, *given, use_reentrant=False)

    assert furthest("llama", recompute) <= 1e-12
