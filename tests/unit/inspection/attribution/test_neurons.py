"""Channels of feed-forwards: what one adds is what is missing without it, and what it promotes is what it raises."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.inspection.trace import trace
from tiny_models import inputs_for, smallest

FAMILIES = ["gpt2", "llama", "gptj", "gemma2", "granite", "cohere", "bart", "t5"]


def looked(family, **call):
    model = smallest(family)
    return trace(model, *inputs_for(model), **call)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_channel_adds_what_is_missing_without_it(family):
    """In the last block, with the scale of what stands behind it as it was: the attribution of the whole layer."""
    traced = looked(family)
    block = len(traced.model.stack.order) - 1
    neurons = traced.neurons(block, 3, against=5, k=4)
    assert neurons.key == f"blocks.{block}.feed_forward"
    assert neurons.check.value < 1e-12
    strongest_B = neurons.effect_BF.abs().amax(-1)
    torch.testing.assert_close(neurons.effect_BK[:, 0].abs(), strongest_B)
    assert torch.equal(neurons.activation_BK, traced[f"{neurons.key}.hidden"][:, -1].gather(1, neurons.channel_BK))
    if family in ("gemma2", "bart"):
        return  # a norm behind the layer has a bias or a scale of its own
    whole = traced.logit_attribution(3, against=5)
    layer_B = whole.value_NBP[whole.names.index(f"{neurons.key}.added"), :, 0]
    torch.testing.assert_close(neurons.effect_BF.sum(-1) + neurons.bias_B, layer_B, rtol=0, atol=1e-12)
    torch.testing.assert_close(neurons.logit_B, whole.logit_BP[:, 0])


def test_a_channel_promotes_what_its_vector_raises():
    traced = looked("gpt2")
    neurons = traced.neurons(0, 3, k=2, promoted=6, position=4)
    down, norm = traced.model.stack.blocks[0].feed_forward.branch.down, traced.model.stack.final
    x_D = traced["blocks.1.resid_post"][0, 4]
    channel, activation = int(neurons.channel_BK[0, 1]), neurons.activation_BK[0, 1]
    written_D = activation * down.weight[:, channel]
    scale = (x_D.var(correction=0) + norm.eps).rsqrt()
    raised_V = traced.model.head.vocabulary.weight @ ((written_D - written_D.mean()) * scale * norm.weight)
    assert torch.equal(neurons.promoted_BKN[0, 1], raised_V.topk(6).indices)
    torch.testing.assert_close(neurons.promoted_effect_BKN[0, 1], raised_V.topk(6).values.detach())
    torch.testing.assert_close(neurons.effect_BK[0, 1], raised_V[3].detach())


def test_what_has_no_channels_is_refused():
    with pytest.raises(UsageError, match="is a MoE, whose channels are not shown"):
        looked("mixtral").neurons(0)
    with pytest.raises(UsageError, match=r"nothing is called 'blocks\.9\.feed_forward'"):
        looked("gpt2").neurons(9)
    with pytest.raises(UsageError, match=r"nothing is called 'blocks\.0\.feed_forward'"):
        looked("lstm").neurons(0)


def test_the_check_sees_channels_of_another_run(monkeypatch):
    from orrery.inspection.attribution import neurons as module

    traced, right = looked("gpt2"), module.matrix_of
    assert traced.neurons(0).check.passed
    monkeypatch.setattr(module, "matrix_of", lambda linear: 1.01 * right(linear))
    assert not traced.neurons(0).check.passed
