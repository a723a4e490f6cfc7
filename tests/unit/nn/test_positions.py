"""Positions: formulas, what each scheme promises, and its limit."""

import math

import pytest
import torch

from orrery.errors import UsageError
from orrery.laws.golden import shifted, sinusoid
from orrery.nn.masks import TokenPositions
from orrery.nn.positions.learned import LearnedPositions
from orrery.nn.positions.onehot import OneHotPositions
from orrery.nn.positions.rotary import Dynamic, Linear, Llama3, Rotary, Unscaled, Yarn, plain_rates
from orrery.nn.positions.scheme import NO_POSITION, PositionCall
from orrery.nn.positions.sinusoidal import SinusoidalPositions

SCALINGS = [
    Unscaled(),
    Linear(factor=2.5),
    Dynamic(factor=3.0, trained=16),
    Yarn(factor=4.0, trained=16),
    Yarn(factor=4.0, trained=16, truncate=False, temperature=0.7),
    Llama3(factor=8.0, low_frequency=1.0, high_frequency=4.0, trained=16),
]


def call(*positions, length=40):
    return PositionCall(TokenPositions(torch.tensor([positions])), {}, length, torch.float64)


def names(scaling):
    return type(scaling).__name__


@pytest.mark.parametrize("base", [10_000.0, 100_000.0])
def test_sinusoid_is_the_formula(base):
    table = sinusoid(base, 6, torch.tensor([0, 1, 37]))
    for row, k in zip(table, (0, 1, 37), strict=True):
        for i in range(3):
            rate = base ** (-2 * i / 6)
            assert row[2 * i] == pytest.approx(math.sin(k * rate), abs=1e-12)
            assert row[2 * i + 1] == pytest.approx(math.cos(k * rate), abs=1e-12)


def test_sinusoid_halves_are_the_same_numbers_in_another_order():
    pairs, halves = (SinusoidalPositions.Spec(halves=h).build(8).bind(call(0, 3, 9)).table_BLD for h in (False, True))
    assert torch.equal(halves, torch.cat([pairs[..., 0::2], pairs[..., 1::2]], -1))


@pytest.mark.parametrize("base", [10_000.0, 100_000.0])
def test_a_shift_of_sinusoids_is_one_linear_map(base):
    assert shifted(base) < 1e-12


def test_float32_models_get_angles_of_float64():
    bound = (
        SinusoidalPositions.Spec()
        .build(8)
        .bind(PositionCall(TokenPositions(torch.tensor([[100_003]])), {}, 1, torch.float32))
    )
    assert bound.table_BLD[0, 0, 0] == pytest.approx(math.sin(100_003), abs=1e-7)


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("scaling", SCALINGS, ids=names)
def test_rotary_products_see_only_the_distance(scaling, interleaved):
    rotary = Rotary.Spec(width=8, scaling=scaling, interleaved=interleaved).build(0)
    q, k = torch.randn(2, 1, 1, 1, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    shifts = range(0, 30, 7)

    def products(distance):
        near = [rotary.bind(call(shift + distance)).rotate(q) for shift in shifts]
        far = [rotary.bind(call(shift)).rotate(k) for shift in shifts]
        return torch.stack([(a * b).sum() for a, b in zip(near, far, strict=True)])

    for distance in (0, 1, 5):
        dots = products(distance)
        torch.testing.assert_close(dots, dots[:1].expand_as(dots), rtol=0, atol=1e-12)
    assert abs(products(1)[0] - products(5)[0]) > 1e-3


@pytest.mark.parametrize("scaling", SCALINGS, ids=names)
def test_rotary_turns_pairs_and_only_the_given_width(scaling):
    rotary = Rotary.Spec(width=8, scaling=scaling, interleaved=True).build(0)
    x = torch.randn(1, 2, 1, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    turned = rotary.bind(call(11)).rotate(x)
    assert torch.equal(turned[..., 8:], x[..., 8:])
    a, b = x[..., 0:8:2], x[..., 1:8:2]
    angle = 11 * scaling.rates(10_000.0, 8, 40)
    expected = scaling.magnitude * (a * angle.cos() - b * angle.sin())
    torch.testing.assert_close(turned[..., 0:8:2], expected, rtol=0, atol=1e-12)


def test_half_and_interleaved_differ_by_a_permutation():
    x = torch.randn(1, 1, 3, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    order = torch.arange(8).view(2, 4).T.flatten()  # 0 4 1 5 ...
    half, neighbours = (Rotary.Spec(width=8, interleaved=i).build(0).bind(call(0, 5, 9)) for i in (False, True))
    a, b = half.rotate(x), neighbours.rotate(x[..., order])
    torch.testing.assert_close(a[..., order], b, rtol=0, atol=1e-12)


def test_scalings_are_their_rules():
    plain = plain_rates(10_000.0, 8)
    assert torch.equal(Linear(factor=2.0).rates(10_000.0, 8, 99), plain / 2)
    assert torch.equal(Dynamic(factor=3.0, trained=16).rates(10_000.0, 8, 16), plain)
    longer = Dynamic(factor=3.0, trained=16).rates(10_000.0, 8, 32)
    torch.testing.assert_close(longer, plain_rates(10_000.0 * 4 ** (8 / 6), 8))
    for mixed in (Yarn(factor=4.0, trained=16), Llama3(factor=4.0, low_frequency=1.0, high_frequency=4.0, trained=16)):
        rates = mixed.rates(10_000.0, 8, 99)
        assert (rates <= plain * (1 + 1e-12)).all()
        assert (rates >= plain / 4 * (1 - 1e-12)).all()
        torch.testing.assert_close(rates[-1], plain[-1] / 4)
    assert Yarn(factor=4.0, trained=16).magnitude == pytest.approx(0.1 * math.log(4) + 1)


def test_llama_3_1_keeps_short_waves_and_divides_long_ones():
    """By the rule on wavelengths, with the published numbers: original context 8,192, factors 1, 4 and 8."""
    scaling = Llama3(factor=8.0, low_frequency=1.0, high_frequency=4.0, trained=8192)
    rates, plain = scaling.rates(500_000.0, 128, 131_072), plain_rates(500_000.0, 128)
    kinds = set()
    for rate, before in zip(rates.tolist(), plain.tolist(), strict=True):
        waves = 8192 / (2 * math.pi / before)
        share = (waves - 1) / (4 - 1)
        kind, expected = ("long", before / 8) if waves < 1 else ("mixed", (1 - share) * before / 8 + share * before)
        if waves > 4:
            kind, expected = "short", before
        kinds.add(kind)
        assert rate == pytest.approx(expected, rel=1e-12), (kind, before)
    assert kinds == {"long", "mixed", "short"}


def test_one_hot_positions_are_concatenated():
    spec = OneHotPositions.Spec(length=5)
    assert spec.extra_width == spec.limit == 5
    x = torch.randn(2, 3, 4, dtype=torch.float64)
    out = spec.build(9).bind(call(0, 4, 2, length=5)).embed(x)
    assert out.shape == (2, 3, 9)
    assert torch.equal(out[..., :4], x)
    assert torch.equal(out[0, :, 4:], torch.eye(5).double()[[0, 4, 2]])


def test_learned_positions_are_rows_of_the_table():
    learned = LearnedPositions.Spec(length=6, offset=2).build(4).double()
    out = learned.bind(call(0, 5, 1, length=6)).embed(torch.zeros(1, 3, 4, dtype=torch.float64))
    assert torch.equal(out[0], learned.table.weight[[2, 7, 3]])


@pytest.mark.parametrize("spec", [LearnedPositions.Spec(length=6), OneHotPositions.Spec(length=6)], ids=names)
@pytest.mark.parametrize("too_long", [call(*range(7), length=7), call(0, length=7)], ids=["tokens", "capacity"])
def test_the_end_of_a_table_is_a_clear_error(spec, too_long):
    with pytest.raises(UsageError, match=r"7 tokens, but .* 6 .*positions") as caught:
        spec.build(8).bind(too_long)
    assert "6 tokens" in caught.value.hint


def test_no_position_does_nothing():
    x = torch.randn(1, 2, 3, 4)
    assert torch.equal(NO_POSITION.embed(x[0]), x[0])
    assert NO_POSITION.rotate(x) is x
    assert NO_POSITION.bias("causal") is None
