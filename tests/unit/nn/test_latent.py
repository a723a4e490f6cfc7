"""Latent attention against a loop written from DeepSeek-V2's equations, and what it leaves in a cache."""

import math

import pytest
import torch

from orrery.errors import UsageError
from orrery.nn.attention.kernels import eager, sdpa
from orrery.nn.attention.latent import HeadWidths, LatentAttention
from orrery.nn.attention.multihead import ScoreSettings
from orrery.nn.cache.contract import UNCACHED, Layer
from orrery.nn.cache.kinds import growing
from orrery.nn.context import Context
from orrery.nn.elementwise import Projection
from orrery.nn.masks import PLAIN_CAUSAL, TokenPositions
from orrery.nn.norms import RMSNorm
from orrery.nn.positions.rotary import Rotary
from orrery.nn.positions.scheme import PositionCall
from orrery.nn.residual import Chain

WIDTH, HEADS, LATENT, QUERY, LENGTH, BASE = 10, 3, 7, 5, 6, 50.0
WIDTHS = HeadWidths(plain=4, rotated=2, value=3)
X = torch.randn(1, LENGTH, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
QUERY_LATENT = Chain.Spec(parts=(Projection.Spec(width=QUERY), RMSNorm.Spec(eps=1e-6)))


def built(**settings):
    spec = LatentAttention.Spec(heads=HEADS, widths=WIDTHS, latent=LATENT, norm=RMSNorm.Spec(eps=1e-6), **settings)
    module = spec.build(WIDTH).double()
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
    return module


def context(kernel=eager, cache=UNCACHED):
    places = TokenPositions(torch.arange(LENGTH)[None])
    rotary = Rotary.Spec(width=WIDTHS.rotated, base=BASE, interleaved=True).build(WIDTH)
    bound = rotary.bind(PositionCall(places, {"causal": places}, LENGTH, torch.float64))
    return Context(
        positions={"rotary": bound},
        masks={"causal": PLAIN_CAUSAL},
        cache=cache,
        kernel=kernel,
        layer=Layer(0, "blocks.0", cache),
    )


def rms(x, gain):
    return x / math.sqrt(float((x * x).mean()) + 1e-6) * gain


def turned(x, position):
    """RoPE on one pair of channels, whose rate is one."""
    cosine, sine = math.cos(position), math.sin(position)
    return torch.stack([x[0] * cosine - x[1] * sine, x[0] * sine + x[1] * cosine])


def by_the_paper(module, queries, cap=None):
    """DeepSeek-V2, section 2.1.2 and 2.1.3, equations 9 to 19, token by token and head by head."""
    plain, value = WIDTHS.plain, WIDTHS.value
    c_kv = [rms(module.latent(x), module.norm.weight) for x in X[0]]
    shared_key = [turned(module.rotated(x), t) for t, x in enumerate(X[0])]
    answers = []
    for t in range(LENGTH):
        heads = []
        for h in range(HEADS):
            q_h = module.q.weight[h * (plain + 2) : (h + 1) * (plain + 2)] @ queries[t]
            q = torch.cat([q_h[:plain], turned(q_h[plain:], t)])
            w_k = module.k.weight[h * plain : (h + 1) * plain]
            w_v = module.v.weight[h * value : (h + 1) * value]
            scores = [q @ torch.cat([w_k @ c_kv[j], shared_key[j]]) / math.sqrt(plain + 2) for j in range(t + 1)]
            scores = scores if cap is None else [cap * torch.tanh(score / cap) for score in scores]
            pattern = torch.stack(scores).softmax(0)
            heads.append(sum(pattern[j] * (w_v @ c_kv[j]) for j in range(t + 1)))
        answers.append(module.out(torch.cat(heads)))
    return torch.stack(answers)[None]


@torch.no_grad()
@pytest.mark.parametrize("kernel", [eager, sdpa])
@pytest.mark.parametrize("bias", [False, True])
def test_equals_the_paper_with_plain_queries(kernel, bias):
    module = built(bias=bias)
    torch.testing.assert_close(module(X, context(kernel)), by_the_paper(module, X[0]), rtol=0, atol=1e-11)


@torch.no_grad()
def test_a_cap_bounds_the_scores_and_a_kernel_without_caps_refuses():
    module = built(scoring=ScoreSettings(cap=0.7))
    expected = by_the_paper(module, X[0], cap=0.7)
    torch.testing.assert_close(module(X, context()), expected, rtol=0, atol=1e-11)
    assert (by_the_paper(module, X[0]) - expected).abs().max() > 1e-3
    with pytest.raises(UsageError, match="cannot cap"):
        module(X, context(sdpa))


@torch.no_grad()
def test_equals_the_paper_with_queries_out_of_a_latent():
    module = built(query=QUERY_LATENT)
    projection, norm = module.query
    queries = [rms(projection(x), norm.weight) for x in X[0]]
    torch.testing.assert_close(module(X, context()), by_the_paper(module, queries), rtol=0, atol=1e-11)


@torch.no_grad()
def test_the_cache_holds_the_latent_and_one_rotated_key_for_all_heads():
    module, cache = built(), growing(1, LENGTH)
    cache.reserve(TokenPositions(torch.arange(LENGTH)[None]), None, ["causal"])
    mixed = module(X, context(cache=cache))
    assert torch.equal(mixed, module(X, context()))
    (store,) = cache.stores.values()
    (kept,), (rotated,) = store.keys.values(), store.values.values()
    assert kept.shape == (1, 1, LENGTH + 1, LATENT)
    assert rotated.shape == (1, 1, LENGTH + 1, WIDTHS.rotated)


@torch.no_grad()
def test_a_scale_replaces_that_of_the_width():
    usual, twice = built(), built(scoring=ScoreSettings(scale=2 * 6**-0.5))
    taken = {}
    seen = context(lambda q, kv, operands: taken.update(operands._asdict()) or eager(q, kv, operands))
    assert (usual(X, seen), taken["scale"])[1] == pytest.approx(6**-0.5)
    assert (twice(X, seen), taken["scale"])[1] == pytest.approx(2 * 6**-0.5)
