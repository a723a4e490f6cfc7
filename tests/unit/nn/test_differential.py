"""Differential attention against a loop written from the paper, and what cannot be paired."""

import math

import pytest
import torch

from orrery.errors import UsageError
from orrery.nn.attention.differential import Contrast, DifferentialAttention
from orrery.nn.attention.kernels import eager, sdpa
from orrery.nn.cache.contract import UNCACHED, Layer
from orrery.nn.context import Context
from orrery.nn.initialisation import Draw
from orrery.nn.masks import PLAIN_CAUSAL
from orrery.nn.norms import HeadNorm, PlainRMSNorm
from orrery.nn.positions.scheme import NO_POSITION
from orrery.nn.residual import Identity

WIDTH, HEADS, KEYS, CHANNELS, LENGTH = 10, 8, 4, 3, 6
INITIAL, EPS = 0.35, 0.1
X = torch.randn(1, LENGTH, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
PAIRS = HeadNorm.Spec(norm=PlainRMSNorm.Spec(eps=EPS), head_width=2 * CHANNELS)
SPEC = DifferentialAttention.Spec(
    heads=HEADS, kv_heads=KEYS, head_width=CHANNELS, contrast=Contrast(initial=INITIAL), norm=PAIRS
)


def built():
    module, rng = SPEC.build(WIDTH).double(), torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
    return module


def context(kernel=eager, cache=UNCACHED):
    layer = Layer(0, "blocks.0", cache)
    masks, positions = {"causal": PLAIN_CAUSAL}, {"none": NO_POSITION}
    return Context(positions=positions, masks=masks, cache=cache, kernel=kernel, layer=layer)


def by_the_paper(module):
    """Ye et al. 2024, equations 1 to 3, pair by pair and token by token; heads are paired as in the brick."""
    q, k, v = ((linear(X[0])).unflatten(-1, (-1, CHANNELS)) for linear in (module.q, module.k, module.v))
    first, second = (math.exp(float(a @ b)) for a, b in zip(module.a, module.b, strict=True))
    taken = first - second + INITIAL

    def weights(head, token):
        scores = [float(q[token, head] @ k[place, head * KEYS // HEADS]) for place in range(token + 1)]
        return torch.tensor(scores, dtype=torch.float64).div(math.sqrt(CHANNELS)).softmax(0)

    rows = []
    for token in range(LENGTH):
        heads = []
        for pair in range(HEADS // 2):
            pattern = weights(pair, token) - taken * weights(pair + HEADS // 2, token)
            group = pair * KEYS // HEADS
            values = torch.cat([v[: token + 1, group], v[: token + 1, group + KEYS // 2]], -1)
            mixed = pattern @ values
            heads.append(mixed / (mixed.square().mean() + EPS).sqrt())
        rows.append(module.out.weight @ torch.cat(heads))
    return torch.stack(rows)[None]


@pytest.mark.parametrize("kernel", [eager, sdpa])
@torch.no_grad()
def test_it_is_the_papers_difference_of_patterns(kernel):
    module = built()
    torch.testing.assert_close(module(X, context(kernel)), by_the_paper(module), rtol=0, atol=1e-12)


@torch.no_grad()
def test_heads_paired_otherwise_are_seen(monkeypatch):
    module, expected = built(), by_the_paper(built())
    monkeypatch.setattr(
        "orrery.nn.attention.differential.shared_values",
        lambda v_BKSC: torch.cat(v_BKSC.chunk(2, dim=1), -1).repeat_interleave(2, 1),
    )
    assert float((module(X, context()) - expected).abs().max()) > 1e-3


@torch.no_grad()
def test_what_is_taken_away_begins_near_its_initial_value():
    module = SPEC.build(WIDTH)
    assert float(module.taken()) == pytest.approx(INITIAL)
    module.initialise(Draw(torch.Generator().manual_seed(0), std=0.02, depth=2, tables={}))
    assert 0 < abs(float(module.taken()) - INITIAL) < 0.1
    assert float(module.q.weight.std()) == pytest.approx(0.02, rel=0.3)


@pytest.mark.parametrize(("heads", "kv_heads"), [(4, 1), (6, 3), (6, 4)])
def test_heads_that_make_no_pairs_are_refused(heads, kv_heads):
    spec = DifferentialAttention.Spec(
        heads=heads, kv_heads=kv_heads, head_width=3, contrast=Contrast(initial=0.2), norm=Identity.Spec()
    )
    with pytest.raises(UsageError, match="make no pairs"):
        spec.build(WIDTH)
