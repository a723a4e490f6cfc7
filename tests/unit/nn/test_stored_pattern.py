"""The kernel that keeps the pattern equals the definition, forward and backward."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.nn.attention.kernels import eager
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.attention.stored_pattern import stored_pattern
from orrery.nn.masks import PLAIN_CAUSAL, BoundMask


def operands(heads=4, kv_heads=4, dtype=torch.float64):
    rng = torch.Generator().manual_seed(0)
    shapes = [(3, heads, 9, 8), (3, kv_heads, 9, 8), (3, kv_heads, 9, 8)]
    return [torch.randn(shape, generator=rng, dtype=dtype).requires_grad_() for shape in shapes]


def run(kernel, q, k, v, mask, bias=None):
    mixed = kernel(q, KeysValues(k, v), Operands(mask=mask, bias_BHLS=bias, scale=0.3))
    weight = torch.linspace(-1, 1, mixed.numel(), dtype=mixed.dtype).view_as(mixed)
    return mixed, *torch.autograd.grad((mixed * weight).sum(), (q, k, v))


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("mask", ["causal", "dense"])
@pytest.mark.parametrize("biased", [False, True])
def test_equals_eager(kv_heads, mask, biased):
    rng = torch.Generator().manual_seed(1)
    allowed = torch.rand(3, 1, 9, 9, generator=rng) < 0.6
    allowed[1, :, 4] = False  # a query that may see nothing
    bound = PLAIN_CAUSAL if mask == "causal" else BoundMask(dense=allowed, is_causal=False)
    bias = torch.randn(3, 4, 9, 9, generator=rng, dtype=torch.float64) if biased else None
    pairs = zip(
        run(stored_pattern, *operands(kv_heads=kv_heads), bound, bias),
        run(eager, *operands(kv_heads=kv_heads), bound, bias),
        strict=True,
    )
    assert all((a - b).abs().max() < 1e-12 for a, b in pairs)


@pytest.mark.parametrize("length", [127, 128, 129, 300])
def test_long_causal_rows_are_computed_in_pieces(length, monkeypatch):
    inner, products = torch.baddbmm, []

    def counted(added, queries, keys, **given):
        products.append((queries.shape[1], keys.shape[2]))
        return inner(added, queries, keys, **given)

    rng = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 2, length, 3, generator=rng, dtype=torch.float64).requires_grad_() for _ in range(3))
    expected = run(eager, q, k, v, PLAIN_CAUSAL)
    monkeypatch.setattr(torch, "baddbmm", counted)
    found = run(stored_pattern, q, k, v, PLAIN_CAUSAL)
    assert all((a - b).abs().max() < 1e-12 for a, b in zip(found, expected, strict=True))
    ends = {127: [127], 128: [128], 129: [128, 129], 300: [128, 256, 300]}[length]
    assert products == [(end - start, end) for start, end in zip([0, *ends], ends, strict=False)]


def test_refuses_dropout():
    q, k, v = operands()
    with pytest.raises(UsageError, match="no dropout on the pattern"):
        stored_pattern(q, KeysValues(k, v), Operands(mask=PLAIN_CAUSAL, scale=1.0, dropout=0.1))


def test_refuses_a_bias_that_needs_a_gradient():
    q, k, v = operands()
    bias = torch.zeros(3, 4, 9, 9, dtype=torch.float64, requires_grad=True)
    with pytest.raises(UsageError, match="no gradient for a bias"):
        stored_pattern(q, KeysValues(k, v), Operands(mask=PLAIN_CAUSAL, bias_BHLS=bias, scale=1.0))


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_multiplies_in_the_dtype_of_autocast(biased, kv_heads):
    """A norm of heads and a rotation leave q and k in float32, the projection of v gives bfloat16, ALiBi float32."""
    q, k, v = operands(kv_heads=kv_heads, dtype=torch.float32)
    bias = torch.randn(3, 4, 9, 9, generator=torch.Generator().manual_seed(1)) if biased else None
    expected = run(eager, q, k, v, PLAIN_CAUSAL, bias)
    with torch.autocast("cpu", torch.bfloat16):
        numbers = run(stored_pattern, q, k, v.detach().bfloat16().requires_grad_(), PLAIN_CAUSAL, bias)
    assert numbers[0].dtype == torch.bfloat16
    for a, b in zip(numbers, expected, strict=True):
        assert (a.float() - b).abs().max() < 0.03 * b.abs().max()
