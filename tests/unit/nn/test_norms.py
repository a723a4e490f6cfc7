"""Norms against their formulas."""

import pytest
import torch

from orrery.nn.norms import HeadNorm, LayerNorm, PerHeadNorm, RMSNorm

X = torch.randn(2, 5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def randomised(spec):
    norm = spec.build(8).double()
    for i, parameter in enumerate(norm.parameters()):
        parameter.data = torch.randn(8, dtype=torch.float64, generator=torch.Generator().manual_seed(i))
    return norm


@pytest.mark.parametrize("eps", [0.0, 1e-5, 0.3])
@pytest.mark.parametrize("bias", [True, False])
def test_layer_norm_is_the_formula_with_the_biased_variance(eps, bias):
    norm = randomised(LayerNorm.Spec(eps=eps, bias=bias))
    mean = X.sum(-1, keepdim=True) / 8
    variance = ((X - mean) ** 2).sum(-1, keepdim=True) / 8
    expected = (X - mean) / (variance + eps).sqrt() * norm.weight
    torch.testing.assert_close(norm(X), expected + norm.bias if bias else expected, rtol=0, atol=1e-12)


def test_the_slide_without_epsilon_has_mean_zero_and_variance_one():
    y = LayerNorm.Spec(eps=0.0).build(8).double()(X)
    torch.testing.assert_close(y.mean(-1), torch.zeros(2, 5).double(), rtol=0, atol=1e-12)
    torch.testing.assert_close(y.var(-1, unbiased=False), torch.ones(2, 5).double(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1.0])
def test_rms_norm_is_the_formula(offset):
    norm = randomised(RMSNorm.Spec(eps=0.1, offset=offset))
    expected = X / ((X * X).mean(-1, keepdim=True) + 0.1).sqrt() * (offset + norm.weight)
    torch.testing.assert_close(norm(X), expected, rtol=0, atol=1e-12)


def test_an_offset_norm_begins_with_gain_one():
    plain, offset = (RMSNorm.Spec(offset=o).build(8).double() for o in (0.0, 1.0))
    assert torch.equal(plain(X), offset(X))


def test_below_float32_the_statistics_are_taken_in_float32():
    x = (300 * X).half()  # squares overflow half precision
    assert RMSNorm.Spec().build(8).half()(x).isfinite().all()


def test_each_head_has_a_gain_of_its_own():
    norm = PerHeadNorm.Spec(head_width=4, eps=0.1).build(8).double()
    gains = torch.randn(2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    for gain, value in zip(norm.gains, gains, strict=True):
        gain.data = value
    for head in range(2):
        one = LayerNorm.Spec(eps=0.1, bias=False).build(4).double()
        one.weight.data = gains[head]
        channels = slice(4 * head, 4 * head + 4)
        torch.testing.assert_close(norm(X)[..., channels], one(X[..., channels]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("inner", [RMSNorm.Spec(eps=0.1, offset=1.0), LayerNorm.Spec(eps=0.1)])
def test_head_norm_is_its_norm_on_every_head(inner):
    norm = HeadNorm.Spec(norm=inner, head_width=4).build(8).double()
    for i, parameter in enumerate(norm.parameters()):
        parameter.data = torch.randn(4, dtype=torch.float64, generator=torch.Generator().manual_seed(i))
    for head in (slice(0, 4), slice(4, 8)):
        torch.testing.assert_close(norm(X)[..., head], norm.norm(X[..., head]), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "spec", [HeadNorm.Spec(norm=RMSNorm.Spec(eps=0.1), head_width=4), PerHeadNorm.Spec(head_width=4, eps=0.1)]
)
def test_the_gradients_of_the_head_norms(spec):
    norm = spec.build(8).double()
    x = X[:1, :2].clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x, *gains: norm(x), (x, *norm.parameters()))


def test_rms_norm_of_bfloat16_beside_a_float32_gain_is_computed_in_float32():
    norm, x = randomised(RMSNorm.Spec()).float(), X.bfloat16()
    normed = norm(x)
    assert normed.dtype == torch.bfloat16
    assert torch.equal(normed, norm(x.float()).bfloat16())


def test_a_gain_that_is_stored_minus_one():
    plain, less = LayerNorm.Spec().build(4), LayerNorm.Spec(offset=1.0).build(4)
    assert less.weight.tolist() == [0.0] * 4
    with torch.no_grad():
        less.weight += 0.5
        plain.weight += 0.5
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(less(x), plain(x), rtol=0, atol=0)
