"""Disentangled attention: its scores are a loop over all pairs, written from the paper."""

import math

import pytest
import torch

from orrery.errors import UsageError
from orrery.nn.attention.disentangled import (
    ContentToPosition,
    DisentangledAttention,
    Own,
    PositionToContent,
    Shared,
)
from orrery.nn.attention.kernels import eager, sdpa
from orrery.nn.attention.multihead import Biases
from orrery.nn.cache.contract import UNCACHED, Layer
from orrery.nn.context import Context
from orrery.nn.masks import PLAIN_FULL, TokenPositions
from orrery.nn.norms import LayerNorm
from orrery.nn.positions.relative_embeddings import Clipped, LogBuckets, RelativeEmbeddings
from orrery.nn.positions.scheme import NO_POSITION, PositionCall

HEADS, C, D, L = 3, 4, 12, 9
X = torch.randn(2, L, D, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
OWN = {"c2p": Own.Spec(width=HEADS * C, bias=False), "p2c": Own.Spec(width=HEADS * C)}
SHARED = {"c2p": Shared.Spec(), "p2c": Shared.Spec()}
TERMS = {"c2p": ContentToPosition, "p2c": PositionToContent}


def random(module):
    rng = torch.Generator().manual_seed(1)
    module = module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng, dtype=torch.float64))
    return module.eval()


def attention(projections, names=("c2p", "p2c")):
    terms = {name: TERMS[name].Spec(projection=projections[name]) for name in names}
    biases = Biases(q=True, k=True, v=True, out=True)
    return random(DisentangledAttention.Spec(heads=HEADS, head_width=C, terms=terms, biases=biases).build(D))


def positions(rows, norm=None):
    spec = RelativeEmbeddings.Spec(rows=rows) if norm is None else RelativeEmbeddings.Spec(rows=rows, norm=norm)
    return random(spec.build(D))


def run(attention, positions, x=X, kernel=eager):
    """Return the output and all taps."""
    seen = {}
    places = TokenPositions(torch.arange(x.shape[1])[None])
    ctx = Context(
        positions={"relative": positions.bind(PositionCall(places, {"full": places}, x.shape[1], x.dtype))},
        masks={"full": PLAIN_FULL},
        cache=UNCACHED,
        kernel=kernel,
        layer=Layer(0, "blocks.0", UNCACHED),
        taps=lambda key, value: seen.setdefault(key.rpartition(".")[2], value),
    )
    with torch.no_grad():
        return attention(x, ctx), seen


def delta(i, j, k):
    """Equation 3 of the paper."""
    if i - j <= -k:
        return 0
    return 2 * k - 1 if i - j >= k else i - j + k


@torch.no_grad()
def looped(attention, table, projections, row_of, names=("c2p", "p2c"), turned=False):
    """Equations 2 and 4, a pair at a time; ``turned`` takes delta(j, i) in the third term, as the paper writes it."""
    of = {"c2p": attention.k, "p2c": attention.q}
    if projections is OWN:
        of = {name: term.projection.linear for name, term in attention.terms.items()}
    scores = torch.zeros(2, HEADS, L, L, dtype=torch.float64)
    for b in range(2):
        for h in range(HEADS):
            part = slice(h * C, (h + 1) * C)
            for i in range(L):
                for j in range(L):
                    q, k = attention.q(X[b, i])[part], attention.k(X[b, j])[part]
                    score = q @ k
                    if "c2p" in names:
                        score = score + q @ of["c2p"](table[row_of(i, j)])[part]
                    if "p2c" in names:
                        row = row_of(j, i) if turned else row_of(i, j)
                        score = score + k @ of["p2c"](table[row])[part]
                    scores[b, h, i, j] = score / math.sqrt((1 + len(names)) * C)
    return scores


@pytest.mark.parametrize("projections", [OWN, SHARED], ids=["own", "shared"])
@pytest.mark.parametrize("names", [("c2p", "p2c"), ("c2p",), ("p2c",), ()], ids=str)
@pytest.mark.parametrize("reach", [3, 20])
def test_scores_are_a_loop_over_all_pairs(projections, names, reach):
    layer, relative = attention(projections, names), positions(Clipped(reach=reach))
    _, seen = run(layer, relative)
    table = relative.table.weight
    expected = looped(layer, table, projections, lambda i, j: delta(i, j, reach), names)
    torch.testing.assert_close(seen["scores"], expected, rtol=0, atol=1e-12)


def test_the_papers_third_term_is_ours_with_its_table_turned_round():
    """Where nothing is clipped: row ``k + d`` stands for a distance in one, row ``k - d`` in the other."""
    layer, relative = attention(SHARED, ("p2c",)), positions(Clipped(reach=20))
    _, seen = run(layer, relative)
    turned = relative.table.weight[(40 - torch.arange(41)).clamp(max=39)]
    expected = looped(layer, turned, SHARED, lambda i, j: delta(i, j, 20), ("p2c",), turned=True)
    torch.testing.assert_close(seen["scores"], expected, rtol=0, atol=1e-12)


def test_the_table_has_a_norm():
    layer, relative = attention(SHARED), positions(Clipped(reach=4), LayerNorm.Spec(eps=0.1))
    _, seen = run(layer, relative)
    with torch.no_grad():
        table = relative.norm(relative.table.weight)
    expected = looped(layer, table, SHARED, lambda i, j: delta(i, j, 4))
    torch.testing.assert_close(seen["scores"], expected, rtol=0, atol=1e-12)


def test_log_buckets_are_the_formula():
    rule = LogBuckets(reach=8, furthest=64)
    for d in range(-200, 201):
        near = abs(d) if abs(d) <= 4 else 4 + math.ceil(math.log(abs(d) / 4) / math.log(63 / 4) * 3)
        assert int(rule.of(torch.tensor(d))) == min(max(8 + int(math.copysign(near, d)), 0), 15)


def test_the_kernels_agree():
    layer, relative = attention(OWN), positions(Clipped(reach=3))
    torch.testing.assert_close(run(layer, relative)[0], run(layer, relative, kernel=sdpa)[0], rtol=0, atol=1e-12)


def test_a_term_can_be_seen_alone():
    _, seen = run(attention(OWN), positions(Clipped(reach=3)))
    plain = seen["q"] @ seen["k"].mT
    total = (plain + seen["c2p"] + seen["p2c"]) / math.sqrt(3 * C)
    torch.testing.assert_close(total, seen["scores"], rtol=0, atol=1e-12)


def test_another_kind_of_position_is_refused():
    ctx = Context(
        positions={"relative": NO_POSITION}, masks={}, cache=UNCACHED, kernel=eager, layer=Layer(0, "", UNCACHED)
    )
    with pytest.raises(UsageError, match="'relative' has no vectors of distances"):
        attention(OWN)(X, ctx)
