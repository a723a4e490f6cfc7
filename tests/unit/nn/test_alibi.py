"""ALiBi: its slopes against values worked out by hand, and what it promises."""

import pytest
import torch

from orrery.nn.masks import EMPTY_SLOT, TokenPositions
from orrery.nn.positions.alibi import Alibi, RoundedAlibi, slopes
from orrery.nn.positions.scheme import PositionCall


def bound(spec, query, key):
    places = [TokenPositions(torch.tensor([positions])) for positions in (query, key)]
    return spec.build(0).bind(PositionCall(places[0], {"causal": places[1]}, 9, torch.float64)).bias("causal")


def test_slopes_of_eight_heads_are_halvings():
    assert slopes(8) == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]


def test_slopes_of_twelve_heads_are_those_of_eight_and_four_between():
    between = [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5]
    assert slopes(12) == pytest.approx([*slopes(8), *between], abs=1e-15)


@pytest.mark.parametrize("heads", [1, 2, 3, 7, 16, 71, 112])
def test_every_head_has_a_slope_of_its_own(heads):
    slopes_found = slopes(heads)
    assert len(set(slopes_found)) == heads
    assert min(slopes_found) >= 2**-8


def test_the_bias_is_the_slope_times_the_distance():
    bias = bound(Alibi.Spec(heads=2), [2, 5], [0, 1, 2, 3])
    distance = torch.tensor([[2.0, 1, 0, -1], [5, 4, 3, 2]], dtype=torch.float64)
    expected = -torch.tensor([2**-4, 2**-8]).double()[:, None, None] * distance
    torch.testing.assert_close(bias[0], expected, rtol=0, atol=1e-15)


def test_a_shift_of_all_positions_changes_nothing_and_an_unused_key_stays_finite():
    spec = Alibi.Spec(heads=3)
    assert torch.equal(bound(spec, [4, 6], [0, 6]), bound(spec, [104, 106], [100, 106]))
    assert bound(spec, [4], [EMPTY_SLOT]).isfinite().all()


def test_the_rounded_form_is_the_same_up_to_a_shift_of_each_query_while_products_are_exact():
    """Powers of two times fewer than 256 positions need no rounding; softmax does not see the shift."""
    plain = bound(Alibi.Spec(heads=8), [2, 5], [0, 1, 255])
    rounded = bound(RoundedAlibi.Spec(heads=8), [2, 5], [0, 1, 255])
    difference = plain - rounded
    torch.testing.assert_close(difference, difference[..., :1].expand_as(difference), rtol=0, atol=1e-12)


def test_the_rounded_form_rounds_slopes_positions_and_products_to_eight_bits():
    bias = bound(RoundedAlibi.Spec(heads=2, scale=0.5), [0], [257, 1001, 1003])
    assert bias[0, 0, 0].tolist() == [0.5 * 2**-4 * rounded for rounded in (256, 1000, 1004)]
