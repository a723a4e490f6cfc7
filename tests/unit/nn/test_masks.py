"""The causal mask of the slides (G17), and what a bound mask promises."""

import torch

from orrery.nn.attention.kernels import eager
from orrery.nn.attention.operands import KeysValues, Operands
from orrery.nn.masks import EMPTY_SLOT, PLAIN_CAUSAL, Causal, Full, Need, TokenPositions, Window, bind

CPU = torch.device("cpu")
FOUR = TokenPositions(torch.arange(4)[None])


def test_causal_is_the_slide():
    allowed = bind(Causal(), FOUR, FOUR).matrix(4, 4, CPU)[0, 0]
    additive = torch.zeros(4, 4).masked_fill(~allowed, float("-inf"))
    inf = float("inf")
    slide = [[0, -inf, -inf, -inf], [0, 0, -inf, -inf], [0, 0, 0, -inf], [0, 0, 0, 0]]
    assert torch.equal(additive, torch.tensor(slide))
    assert torch.equal(PLAIN_CAUSAL.matrix(4, 4, CPU)[0, 0], allowed)


def test_masked_weights_are_exactly_zero_and_rows_sum_to_one():
    seen = {}
    x = torch.randn(1, 1, 4, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    eager(x, KeysValues(x, x), Operands(mask=PLAIN_CAUSAL, scale=1.0, tap=seen.setdefault))
    pattern = seen["pattern"][0, 0]
    assert (pattern.triu(1) == 0.0).all()
    torch.testing.assert_close(pattern.sum(-1), torch.ones(4, dtype=torch.float64), rtol=0, atol=1e-15)


def test_no_rule_shows_an_unused_key():
    unused = TokenPositions(torch.full((1, 3), EMPTY_SLOT))
    for mask in (Full(), Causal(), Causal() & Window(length=2)):
        assert not bind(mask, FOUR, unused).dense.any()


def test_rules_join_with_and():
    both = Causal() & Window(length=2)
    assert both.needs == {Need.ORDER, Need.DISTANCE}
    assert torch.equal(bind(both, FOUR, FOUR).dense[0, 0], torch.ones(4, 4).tril().triu(-1).bool())
