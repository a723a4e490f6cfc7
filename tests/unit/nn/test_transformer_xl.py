"""Transformer-XL's attention, made of the terms of disentangled attention: a loop over its four terms."""

import pytest
import torch

from orrery.nn.attention.disentangled import ContentToPosition, DisentangledAttention, Own
from orrery.nn.attention.kernels import eager
from orrery.nn.attention.multihead import ScoreSettings
from orrery.nn.attention.transformer_xl import ContentBias, HeadBias
from orrery.nn.cache.contract import UNCACHED, Layer
from orrery.nn.context import Context
from orrery.nn.masks import PLAIN_CAUSAL, TokenPositions
from orrery.nn.positions.relative_sinusoids import RelativeSinusoids
from orrery.nn.positions.scheme import PositionCall

HEADS, C, D, L = 3, 4, 10, 7
SIZE = {"heads": HEADS, "head_width": C}
X = torch.randn(2, L, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def attention():
    places = ContentToPosition.Spec(projection=Own.Spec(width=HEADS * C, bias=False), query=HeadBias.Spec(**SIZE))
    terms = {"places": places, "contents": ContentBias.Spec(**SIZE)}
    module = DisentangledAttention.Spec(**SIZE, terms=terms, scoring=ScoreSettings(scale=C**-0.5), mask="causal").build(
        D
    )
    rng = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in module.double().parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
    return module


def sinusoid(distance):
    rates = 10_000 ** (-torch.arange(0, D, 2, dtype=torch.float64) / D)
    return torch.cat([(distance * rates).sin(), (distance * rates).cos()])


@torch.no_grad()
def test_scores_are_the_four_terms():
    module, seen = attention(), {}
    places = TokenPositions(torch.arange(L)[None])
    bound = RelativeSinusoids.Spec().build(D).bind(PositionCall(places, {"causal": places}, L, torch.float64))
    ctx = Context(
        positions={"relative": bound},
        masks={"causal": PLAIN_CAUSAL},
        cache=UNCACHED,
        kernel=eager,
        layer=Layer(0, "", UNCACHED),
        taps=lambda key, value: seen.setdefault(key, value),
    )
    module(X, ctx)
    v, u = module.terms["places"].query.weight, module.terms["contents"].weight
    for b in range(2):
        for h in range(HEADS):
            part = slice(h * C, (h + 1) * C)
            for i in range(L):
                for j in range(i + 1):
                    q, k = module.q(X[b, i])[part], module.k(X[b, j])[part]
                    r = module.terms["places"].projection.linear(sinusoid(i - j))[part]
                    expected = (q @ k + q @ r + u[h] @ k + v[h] @ r) / C**0.5
                    assert float(seen["scores"][b, h, i, j]) == pytest.approx(float(expected), abs=1e-12)
