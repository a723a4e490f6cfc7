"""The sinusoid as a table: the formula's numbers, an end, and nothing to train."""

import pytest
import torch

from orrery.errors import UsageError
from orrery.nn.masks import TokenPositions
from orrery.nn.positions.scheme import PositionCall
from orrery.nn.positions.sinusoidal import SinusoidalPositions
from orrery.nn.positions.sinusoidal_table import SinusoidalTable


def added(scheme, positions):
    places = TokenPositions(positions)
    call = PositionCall(places, {"all": places}, int(positions.max()) + 1, torch.float32)
    return scheme.bind(call).embed(torch.zeros(*positions.shape, 8))


def test_it_holds_the_formula():
    table, positions = SinusoidalTable.Spec(length=12).build(8), torch.tensor([[3, 0, 11], [1, 2, 3]])
    assert torch.equal(added(table, positions), added(SinusoidalPositions.Spec(halves=True).build(8), positions))
    assert [p.requires_grad for p in table.parameters()] == [False]


def test_it_ends():
    with pytest.raises(UsageError, match="12 positions"):
        added(SinusoidalTable.Spec(length=12).build(8), torch.tensor([[12]]))
