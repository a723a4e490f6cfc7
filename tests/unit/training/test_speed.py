"""How fast a run could be."""

from orrery.training.speed import Speed


def test_a_token_that_costs_two_operations_is_learnt_half_as_often_as_the_machine_computes():
    assert Speed(operations_per_token=2.0, operations_per_second=10.0).tokens_per_second == 5.0
