"""Direct logit attribution: the parts sum to the logit, through whatever linear thing stands behind the stream."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.inspection.trace import trace
from tiny_models import inputs_for, smallest

# LayerNorm, RMSNorm, factors on logits, caps, projections before the head, biases behind it, post-LN, recurrences.
FAMILIES = [
    "gpt2",
    "llama",
    "gptj",
    "phi",
    "gemma2",
    "granite",
    "cohere",
    "opt",
    "bart",
    "t5",
    "mbart",
    "vision_encoder_decoder",
    "lstm",
    "rnnsearch",
]


def looked(family, dtype=torch.float64, **call):
    model = smallest(family, dtype)
    return trace(model, *inputs_for(model), **call)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_parts_sum_to_the_logit(family):
    traced = looked(family)
    every = traced.logit_attribution(position=None)
    assert every.check.bound == 1e-9
    assert every.check.value < 1e-12
    assert torch.equal(every.token_BP, traced.logits.argmax(-1))
    one = traced.logit_attribution(3, position=1)
    if family != "gemma2":
        torch.testing.assert_close(one.value_NBP.sum(0)[:, 0], traced.logits[:, 1, 3], rtol=0, atol=1e-12)
    against = traced.logit_attribution(3, against=5, position=1)
    other = traced.logit_attribution(5, position=1)
    assert against.names == one.names
    torch.testing.assert_close(against.value_NBP, one.value_NBP - other.value_NBP, rtol=0, atol=1e-12)


@pytest.mark.parametrize("family", ["gpt2", "llama", "bart", "gemma2"])
def test_the_sum_holds_in_float32(family):
    attribution = looked(family, torch.float32).logit_attribution(position=None)
    assert (attribution.check.bound, attribution.check.passed) == (1e-4, True)
    assert attribution.check.value < 2e-6


def test_each_part_is_read_through_the_frozen_norm():
    traced = looked("llama")
    x_BD, head = traced["blocks.1.resid_post"][:, -1], traced.model.head.vocabulary.weight
    scale_B1 = (x_BD.square().mean(-1, keepdim=True) + traced.model.stack.final.eps).rsqrt()
    parts = traced.parts()
    attribution = traced.logit_attribution(7)
    for name in parts.names:
        expected = (parts[name][:, 0] * scale_B1 * traced.model.stack.final.weight) @ head[7]
        value = attribution.value_NBP[attribution.names.index(name), :, 0]
        torch.testing.assert_close(value, expected.detach(), rtol=0, atol=1e-13)


def test_biases_are_parts_of_their_own():
    traced = looked("phi")
    attribution = traced.logit_attribution(3)
    head, final = traced.model.head.vocabulary, traced.model.stack.final
    assert attribution.names[-2:] == ["final.bias", "head.bias"]
    torch.testing.assert_close(
        attribution.value_NBP[-2:, 0, 0], torch.stack([final.bias @ head.weight[3], head.bias[3]]).detach()
    )
    assert looked("bart").logit_attribution(3).names[-1] == "cap.bias"


def test_a_cap_is_left_out_and_said():
    traced = looked("gemma2")
    attribution = traced.logit_attribution(3)
    cap = traced.model.head.cap.cap
    torch.testing.assert_close(cap * torch.tanh(attribution.logit_BP / cap), traced.logits[:, -1:, 3])
    assert attribution.notes == ["the logit is that before the cap, which bends it"]


def test_the_strongest_parts_come_first():
    attribution = looked("gpt2").logit_attribution(3)
    top = attribution.top(4, row=1)
    assert [abs(value) for _, value in top] == sorted((abs(value) for _, value in top), reverse=True)
    assert abs(top[0][1]) == attribution.value_NBP[:, 1, 0].abs().max()
    assert dict(top) == {name: float(attribution.value_NBP[attribution.names.index(name), 1, 0]) for name, _ in top}


def test_the_check_sees_another_head():
    traced = looked("gpt2", torch.float32)
    with torch.no_grad():
        traced.model.stack.final.weight[0] += 0.1
    assert not traced.logit_attribution(3).check.passed


def test_what_is_no_sum_is_refused():
    with pytest.raises(UsageError, match="an Activation acts on a sum as a whole") as error:
        looked("bert").logit_attribution(3)
    assert "gradient" in error.value.hint
    with pytest.raises(UsageError, match="scores no vocabulary: its main head is a SequenceHead"):
        looked("vit").logit_attribution(0)
    with pytest.raises(UsageError, match="token 61 of a vocabulary of 61"):
        looked("gpt2").logit_attribution(61)
