"""RWKV's mixings: every form is the formula, with gradients, and no decay or key overflows."""

import pytest
import torch

from orrery.laws import cache, packing, padding, recurrence, sight
from orrery.nn.linear import faded_sums
from orrery.nn.linear.faded_sums import NOTHING

BOUND = {torch.float64: 1e-9, torch.float32: 1e-4}


def naive(k_NTC, v_NTC, w_C, u_C):
    """Return the averages as the paper writes them: every weight of every pair."""
    said = []
    for t in range(k_NTC.shape[1]):
        past = [k_NTC[:, i] - (t - 1 - i) * w_C for i in range(t)]
        weight_SNC = torch.stack([*past, u_C + k_NTC[:, t]]).softmax(0)
        said.append((weight_SNC * v_NTC[:, : t + 1].transpose(0, 1)).sum(0))
    return torch.stack(said, 1)


def given(length, dtype, scale=1.0):
    rng = torch.Generator().manual_seed(length)
    k, v = (torch.randn(2, length, 5, generator=rng, dtype=torch.float64) * scale for _ in range(2))
    w, u = torch.rand(5, generator=rng, dtype=torch.float64) * 3, torch.randn(5, generator=rng, dtype=torch.float64)
    return [x.to(dtype).requires_grad_() for x in (k, v, w, u)]


def empty(k):
    zeros = k.new_zeros(k.shape[0], k.shape[2])
    return zeros, zeros, torch.full_like(zeros, NOTHING)


@pytest.mark.parametrize("dtype", BOUND)
@pytest.mark.parametrize("length", [1, 7, 16, 37])
@pytest.mark.parametrize("form", [faded_sums.parallel, faded_sums.chunked])
def test_a_form_is_the_formula_with_its_gradients(form, length, dtype):
    k, v, w, u = given(length, dtype)
    cut = length // 2  # the second call goes on from what the first one left
    first, past = form(k[:, :cut], v[:, :cut], (-w).expand(2, cut, 5), u, empty(k)) if cut else (k[:, :0], empty(k))
    rest, _ = form(k[:, cut:], v[:, cut:], (-w).expand(2, length - cut, 5), u, past)
    mixed, expected = torch.cat([first, rest], 1), naive(k, v, w, u)
    torch.testing.assert_close(mixed, expected, rtol=0, atol=BOUND[dtype])
    weight = torch.randn_like(expected)
    mine, theirs = (
        torch.autograd.grad((y * weight).sum(), (k, v, w, u), allow_unused=True, materialize_grads=True)
        for y in (mixed, expected)
    )
    for a, b in zip(mine, theirs, strict=True):
        torch.testing.assert_close(a, b, rtol=BOUND[dtype], atol=BOUND[dtype])


@pytest.mark.parametrize("form", [faded_sums.parallel, faded_sums.chunked])
def test_large_keys_and_strong_decays_overflow_nowhere(form):
    k, v, w, u = (x.detach() for x in given(40, torch.float32, scale=60.0))
    mixed, past = form(k, v, (-20 * w).expand(2, 40, 5), u, empty(k))
    expected = naive(k.double(), v.double(), 20 * w.double(), u.double())
    assert (mixed - expected).abs().max() <= BOUND[torch.float32] * expected.abs().max()
    assert all(part.isfinite().all() for part in past)


@pytest.mark.parametrize("law", [cache, packing, padding, recurrence, sight], ids=lambda law: law.__name__)
def test_the_laws_hold(law):
    evidence = list(law.check("rwkv"))
    assert evidence
    assert [e for e in evidence if not e.passed] == []
