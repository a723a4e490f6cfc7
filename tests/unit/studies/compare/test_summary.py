"""Means and spreads over seeds, where the order of two turns, and how much is recipe and how much budget."""

import pytest

from orrery.studies.compare.findings import BESIDE, HAND_SET, SWEPT, Comparison, ComparisonEntry
from orrery.studies.compare.summary import (
    by_budget,
    gain_sentences,
    gains,
    groups,
    order_sentences,
    ranked,
    table,
    turns,
)


def trained(name, budget, bits, seed=0, recipe=SWEPT):
    return ComparisonEntry(name, "", 1000, 4000, 10, 1.0, bits, 2.0, 5, (), budget, seed, recipe, 1e-3, 1)


def comparison(*entries, nats=None):
    settings = {"unit": "minutes", "budgets": [1, 4], "seeds": [0]}
    return Comparison(settings, {"nats_per_bit": nats}, list(entries))


COUNTED = ComparisonEntry("ngram", "", 50, 900, 400, 0.1, 2.5, 6.0)


def test_seeds_become_a_mean_and_a_standard_deviation():
    compared = comparison(*(trained("a", 1, bits, seed) for seed, bits in enumerate((2.0, 2.1, 2.3))), nats=0.5)
    (group,) = groups(compared)
    assert group.mean == pytest.approx(6.4 / 3)
    assert group.spread == pytest.approx(0.152753, abs=1e-6)
    assert "2.133 ± 0.153" in table(compared)[0]
    assert table(compared)[0][-1] == "1.067 ± 0.076"


def test_the_order_turns_where_the_lines_cross_over_the_logarithm_of_the_budget():
    compared = comparison(
        trained("a", 1, 3.0), trained("b", 1, 2.0), trained("a", 4, 1.0), trained("b", 4, 2.0), COUNTED
    )
    curves = by_budget(compared)
    assert turns(curves["a"], curves["b"]) == pytest.approx([2.0])
    assert turns(curves["b"], curves["ngram"]) == []
    sentences = order_sentences(compared)
    assert "b is ahead of a at 1 minutes, and their order turns at about 2; at 4 a is ahead." in sentences
    assert "b is ahead of ngram at every budget from 1 to 4 minutes." in sentences
    assert all("turns" in sentence for sentence in sentences[:2])


def test_an_order_that_turns_twice_says_both_places():
    compared = comparison(
        *(trained("a", budget, bits) for budget, bits in ((1, 1.0), (4, 3.0), (16, 1.0))),
        *(trained("b", budget, 2.0) for budget in (1, 4, 16)),
    )
    curves = by_budget(compared)
    assert turns(curves["a"], curves["b"]) == pytest.approx([2.0, 8.0])
    assert "turns at about 2 and 8" in order_sentences(compared)[0]


def test_a_difference_within_the_seeds_is_called_so():
    near = comparison(*(trained(name, 1, bits, seed) for name, pair in (("a", (2.0, 2.2)), ("b", (2.1, 2.3)))
                        for seed, bits in enumerate(pair)))  # fmt: skip
    assert "less than two standard deviations" in order_sentences(near)[0]
    far = comparison(*(trained(name, 1, bits, seed) for name, pair in (("a", (2.0, 2.01)), ("b", (2.5, 2.51)))
                       for seed, bits in enumerate(pair)))  # fmt: skip
    assert "standard" not in order_sentences(far)[0]


def test_recipe_and_budget_add_up():
    compared = comparison(
        *(trained("a", budget, bits) for budget, bits in ((1, 2.4), (4, 1.9))),
        *(trained("b", budget, bits) for budget, bits in ((1, 2.3), (4, 2.2))),
        trained("a", 1, 2.7, recipe=BESIDE),
        trained("b", 1, 2.35, recipe=BESIDE),
        trained("a", 4, 2.1, recipe=BESIDE),
    )
    one, other = sorted(gains(compared), key=lambda gain: gain.name)
    assert (one.before, one.recipe, one.budget, one.after) == pytest.approx((2.7, 0.3, 0.5, 1.9))
    assert (other.recipe, other.budget) == pytest.approx((0.05, 0.1))
    (said,) = gain_sentences(compared)
    first, second = ("a", "b") if said.startswith("a less b") else ("b", "a")
    sign = 1 if first == "a" else -1
    assert said.startswith(f"{first} less {second}: {sign * 0.35:+.3f}")
    assert f"{-sign * 0.25:+.3f}, the budget by {-sign * 0.4:+.3f}" in said
    assert {group.name: group.mean for group in ranked(compared)} == {"a": 1.9, "b": 2.2}


def test_rates_set_by_hand_for_all_are_a_comparison_like_any():
    compared = comparison(trained("a", 1, 2.0, recipe=HAND_SET), trained("a", 4, 1.5, recipe=HAND_SET), COUNTED)
    assert [group.mean for group in ranked(compared)] == [1.5, 2.5]
    assert gains(compared) == []
