"""Kernels: torch's definition, fully masked rows, grouped heads, dropout."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from orrery.errors import UsageError
from orrery.laws.models import KERNELS
from orrery.nn.attention.kernels import eager, sdpa
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.attention.stored_pattern import stored_pattern
from orrery.nn.masks import PLAIN_CAUSAL, BoundMask


def call(kernel, q, k, v, mask, bias=None, scale=0.5, dropout=0.0, tap=lambda name, x: x, **more):
    return kernel(
        q, KeysValues(k, v), Operands(mask=mask, bias_BHLS=bias, scale=scale, dropout=dropout, tap=tap, **more)
    )


@given(
    seed=st.integers(0, 10_000),
    shape=st.tuples(st.integers(1, 3), st.sampled_from([(4, 4), (4, 2), (6, 1)]), st.integers(1, 6), st.integers(1, 9)),
    biased=st.booleans(),
    density=st.sampled_from([0.1, 0.5, 1.0]),
)
def test_every_kernel_is_the_definition(seed, shape, biased, density):
    B, (H, KV), L, S = shape
    rng = torch.Generator().manual_seed(seed)
    q = torch.randn(B, H, L, 8, dtype=torch.float64, generator=rng, requires_grad=True)
    k, v = (torch.randn(B, KV, S, 8, dtype=torch.float64, generator=rng, requires_grad=True) for _ in range(2))
    mask = BoundMask(dense=torch.rand(B, 1, L, S, generator=rng) < density, is_causal=False)
    bias = torch.randn(B, H, L, S, dtype=torch.float64, generator=rng) if biased else None
    weight = torch.randn(B, H, L, 8, dtype=torch.float64, generator=rng)
    expected = call(eager, q, k, v, mask, bias)
    gradients = torch.autograd.grad((expected * weight).sum(), (q, k, v))
    nothing = ~mask.dense.any(-1).expand(B, H, L)
    for kernel in KERNELS.values():
        mixed = call(kernel, q, k, v, mask, bias)
        torch.testing.assert_close(mixed, expected, rtol=0, atol=1e-12)
        assert (mixed[nothing] == 0).all()
        for a, b in zip(torch.autograd.grad((mixed * weight).sum(), (q, k, v)), gradients, strict=True):
            torch.testing.assert_close(a, b, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_plain_causal_is_torch(kernel):
    q, k, v = torch.randn(3, 2, 4, 7, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5)
    torch.testing.assert_close(call(KERNELS[kernel], q, k, v, PLAIN_CAUSAL), expected, rtol=0, atol=1e-12)


def test_eager_shows_scores_and_pattern_and_takes_an_edit():
    q, k, v = torch.randn(3, 1, 2, 4, 8, generator=torch.Generator().manual_seed(0))
    seen = {}

    def first_key_only(name, x):
        seen[name] = x
        if name != "pattern":
            return x
        return torch.zeros_like(x).index_fill(-1, torch.tensor([0]), 1.0)

    mixed = call(eager, q, k, v, PLAIN_CAUSAL, tap=first_key_only)
    assert list(seen) == ["scores", "pattern"]
    assert (seen["pattern"].triu(1) == 0).all()
    torch.testing.assert_close(seen["pattern"].sum(-1), torch.ones(1, 2, 4))
    torch.testing.assert_close(mixed, v[:, :, :1].expand_as(mixed))


def test_dropout_keeps_the_mean():
    torch.manual_seed(0)
    q = torch.zeros(1, 1, 2000, 4)
    v = torch.ones(1, 1, 2000, 4)
    mask = BoundMask(dense=torch.ones(1, 1, 2000, 2000, dtype=torch.bool), is_causal=False)
    mixed = call(eager, q, q, v, mask, dropout=0.5)
    assert abs(float(mixed.mean()) - 1) < 0.01
    assert float(mixed.std()) > 0


def heads(S, seed=0):
    """Return random queries, keys and values: four heads share two keys."""
    rng = torch.Generator().manual_seed(seed)
    q, k, v = (torch.randn(2, n, S, 8, dtype=torch.float64, generator=rng) for n in (4, 2, 2))
    return q.requires_grad_(), k.requires_grad_(), v.requires_grad_()


def test_capped_scores_are_the_formula():
    q, k, v = heads(5)
    k_all, v_all = (x.repeat_interleave(2, dim=1) for x in (k, v))
    capped = 0.3 * torch.tanh(0.5 * (q @ k_all.mT) / 0.3)
    later = torch.ones(5, 5, dtype=torch.bool).triu(1)
    expected = capped.masked_fill(later, float("-inf")).softmax(-1) @ v_all
    torch.testing.assert_close(call(eager, q, k, v, PLAIN_CAUSAL, cap=0.3), expected, rtol=0, atol=1e-12)
    assert torch.autograd.gradcheck(lambda *x: call(eager, *x, PLAIN_CAUSAL, cap=0.3), heads(2))


@pytest.mark.parametrize(
    ("kernel", "asked", "says", "instead"),
    [
        (sdpa, {"cap": 0.3}, "the sdpa kernel cannot cap", "eager"),
        (stored_pattern, {"cap": 0.3}, "has neither caps nor sinks", "eager"),
        (stored_pattern, {"sinks_H": torch.zeros(4)}, "has neither caps nor sinks", "eager"),
        (
            stored_pattern,
            {"bias": torch.zeros(1, 4, 3, 3, requires_grad=True)},
            "no gradient for a bias",
            "sdpa or the",
        ),
        (stored_pattern, {"dropout": 0.1}, "no dropout on the pattern", "the sdpa or the eager"),
    ],
)
def test_what_a_kernel_cannot_do_is_refused_and_another_one_named(kernel, asked, says, instead):
    with pytest.raises(UsageError, match=says) as error:
        call(kernel, *heads(3), PLAIN_CAUSAL, **asked)
    assert instead in error.value.hint
    assert error.value.hint.endswith("eager kernel")


@pytest.mark.parametrize("kernel", [eager, sdpa])
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("density", [None, 0.5])
def test_a_sink_is_a_key_with_a_score_of_its_own_and_nothing_to_give(kernel, biased, density):
    q, k, v = heads(5)
    rng = torch.Generator().manual_seed(1)
    sinks = torch.randn(4, dtype=torch.float64, generator=rng)
    bias = torch.randn(1, 4, 5, 5, dtype=torch.float64, generator=rng) if biased else None
    mask = PLAIN_CAUSAL
    if density:
        mask = BoundMask(dense=torch.rand(2, 1, 5, 5, generator=rng) < density, is_causal=False)
    scores = 0.5 * (q @ k.repeat_interleave(2, dim=1).mT) + (bias if biased else 0)
    weights = scores.exp().masked_fill(~mask.matrix(5, 5, q.device), 0.0)
    pattern = weights / (weights.sum(-1, keepdim=True) + sinks.exp()[:, None, None])
    expected = pattern @ v.repeat_interleave(2, dim=1)
    mixed = call(kernel, q, k, v, mask, bias, sinks_H=sinks)
    torch.testing.assert_close(mixed, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kernel", [eager, sdpa])
def test_the_gradient_of_a_sink(kernel):
    sinks = torch.randn(4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda q, k, v, s: call(kernel, q, k, v, PLAIN_CAUSAL, sinks_H=s), (*heads(2), sinks)
    )
