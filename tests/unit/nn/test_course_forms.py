"""The forms in which the course writes attention, beside the one that runs: all the same numbers."""

import math

import pytest
import torch

from orrery.laws.golden import POLL_VALUES, POLL_WEIGHTS, poll
from orrery.laws.models import KERNELS
from orrery.nn.attention.kernels import eager
from orrery.nn.attention.multihead import MultiHeadAttention
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.masks import PLAIN_CAUSAL, BoundMask

L, C = 6, 8
Q, K, V = torch.randn(3, L, C, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
FULL = BoundMask(dense=torch.ones(1, 1, L, L, dtype=torch.bool), is_causal=False)
MASKS = {"full": FULL, "causal": PLAIN_CAUSAL}


SCALE = 1 / math.sqrt(C)


def run(kernel, q, k, v, mask, scale=SCALE):
    kv = KeysValues(k[None, None], v[None, None])
    return kernel(q[None, None], kv, Operands(mask=mask, scale=scale))[0, 0]


def query_by_query(q, k, v, causal):
    """Decks S0 and S1: for each query, scores of the keys it may see, weights, weighted sum."""
    rows = []
    for i in range(len(q)):
        seen = range(i + 1) if causal else range(len(k))
        weights = [math.exp(float(q[i] @ k[j]) / math.sqrt(C)) for j in seen]
        rows.append(sum(w / sum(weights) * v[j] for w, j in zip(weights, seen, strict=True)))
    return torch.stack(rows)


def additive(causal):
    return torch.full((L, L), -math.inf).triu(1) if causal else torch.zeros(L, L)


def row_form(q, k, v, causal):
    """Deck S3: softmax(Q K^T / sqrt(d) + M) V, one token a row."""
    return (q @ k.T / math.sqrt(C) + additive(causal)).softmax(-1) @ v


def column_form(q, k, v, causal):
    """Deck S4: V softmax(K^T Q / sqrt(d) + M^T), one token a column."""
    q, k, v = q.T, k.T, v.T
    return (v @ (k.T @ q / math.sqrt(C) + additive(causal).T).softmax(0)).T


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("form", [query_by_query, row_form, column_form])
@pytest.mark.parametrize("kernel", KERNELS)
def test_loop_rows_and_columns_are_the_kernel(form, kernel, mask):
    expected = form(Q, K, V, mask == "causal")
    torch.testing.assert_close(run(KERNELS[kernel], Q, K, V, MASKS[mask]), expected, rtol=0, atol=1e-12)


def test_concatenated_heads_are_summed_full_width_heads():
    """G20: deck S0 gives each head a matrix of its own on the full width and adds the heads up."""
    attention = MultiHeadAttention.Spec(heads=4, kv_heads=4, head_width=3).build(12).double()
    x = torch.randn(L, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    total = 0
    for h in range(4):
        part = slice(3 * h, 3 * h + 3)
        q, k, v = (x @ layer.weight[part].T for layer in (attention.q, attention.k, attention.v))
        head = run(eager, q, k, v, PLAIN_CAUSAL, scale=3**-0.5)
        total = total + head @ attention.out.weight[:, part].T
    from orrery.nn.cache.contract import UNCACHED, Layer
    from orrery.nn.context import Context
    from orrery.nn.positions.scheme import NO_POSITION

    ctx = Context(
        positions={"none": NO_POSITION},
        masks={"causal": PLAIN_CAUSAL},
        cache=UNCACHED,
        kernel=eager,
        layer=Layer(0, "", UNCACHED),
    )
    torch.testing.assert_close(attention(x[None], ctx)[0], total, rtol=0, atol=1e-12)


def test_the_poll():
    """G12: weights that belong to the content give the same answer in any order; frozen to the place they do not."""
    weights = torch.tensor(POLL_WEIGHTS, dtype=torch.float64)
    expected = torch.tensor([0.1, 0.2, 1.2, 0.1], dtype=torch.float64)
    torch.testing.assert_close(poll((0, 1, 2, 3), weights), expected)
    swapped = [0, 2, 1, 3]
    torch.testing.assert_close(poll(tuple(swapped), weights[swapped]), expected)
    frozen = torch.tensor([0.1, 0.6, 0.4, 0.1], dtype=torch.float64)
    torch.testing.assert_close(poll(tuple(swapped), weights), frozen)
    torch.testing.assert_close(weights @ torch.tensor(POLL_VALUES, dtype=torch.float64), expected)


def test_a_sharp_query_looks_up_exactly_one_value():
    """Attention as a soft dictionary: with growing sharpness the answer becomes one stored value."""
    keys = torch.eye(L, C, dtype=torch.float64)
    soft, hard = (run(eager, keys[2:3].expand(L, -1), keys, V, FULL, scale=scale) for scale in (1.0, 1000.0))
    assert torch.equal(hard[0], V[2])
    assert not torch.allclose(soft[0], V[2])
