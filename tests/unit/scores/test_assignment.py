"""The cheapest assignment, against scipy's."""

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from orrery.errors import UsageError
from orrery.scores.assignment import cheapest


@pytest.mark.parametrize("seed", range(60))
def test_it_is_scipys(seed):
    rng = np.random.default_rng(seed)
    costs = rng.normal(size=rng.integers(0, 16, 2))
    for ours, theirs in zip(cheapest(costs), linear_sum_assignment(costs), strict=True):
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("seed", range(60))
def test_of_equal_costs_it_is_as_cheap_as_scipys(seed):
    rng = np.random.default_rng(seed)
    costs = rng.integers(-2, 3, rng.integers(1, 14, 2)).astype(float)
    rows, columns = cheapest(costs)
    assert len(set(rows)) == len(set(columns)) == len(rows) == min(costs.shape)
    assert (np.diff(rows) > 0).all()
    assert costs[rows, columns].sum() == costs[linear_sum_assignment(costs)].sum()


@pytest.mark.parametrize("costs", [[1.0, 2.0], [[1.0, np.nan]], [[np.inf]]])
def test_what_is_no_table_of_numbers_is_refused(costs):
    with pytest.raises(UsageError, match="costs of shape"):
        cheapest(costs)
