"""Constraints that ask for nothing forbid nothing."""

import torch

from orrery.generation.constraints import FREE, Constraints, TokenPlace


def test_without_settings_nothing_is_forbidden_not_even_the_end_of_an_empty_answer():
    assert (FREE.least_row, FREE.least_answer, FREE.once) == (0, 0, 0)
    scores = torch.zeros(1, 5)
    for constraints in (FREE, Constraints(end=frozenset([2])), Constraints(end=frozenset([2]), never=(4,))):
        limited = constraints(scores, [TokenPlace((1,), (), 8)])
        assert limited[0, :4].tolist() == [0.0] * 4
