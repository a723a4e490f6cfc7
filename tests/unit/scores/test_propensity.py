"""Propensity-scored precision against its formula in plain loops, and what is refused."""

import math
import random

import pytest

from orrery.errors import DataError
from orrery.scores.propensity import Propensities, propensity_precision_at


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [1, 3, 5])
def test_it_is_the_sum_of_inverse_propensities_over_that_of_the_best_order(seed, k):
    rng = random.Random(seed)
    counts = {label: rng.randint(1, 40) for label in range(12)}
    ranked = [rng.sample(range(15), 6) for _ in range(30)]
    right = [rng.sample(range(15), rng.randint(1, 7)) for _ in range(30)]
    a, b = rng.choice([(0.55, 1.5), (0.5, 0.4), (0.6, 2.6)])
    c = (math.log(200) - 1) * (b + 1) ** a
    worth = {label: 1 + c * (counts.get(label, 0) + b) ** -a for label in range(15)}
    top = sum(worth[label] for own, names in zip(right, ranked, strict=True) for label in names[:k] if label in own)
    best = sum(sum(sorted((worth[label] for label in own), reverse=True)[:k]) for own in right)
    found = propensity_precision_at(k, ranked, right, Propensities(counts, 200, a, b))
    assert found.score == pytest.approx(top / best, abs=1e-12)


def test_the_published_constants_give_the_published_form():
    """Jain et al. 2016: of a label that all texts have p is nearly 1, and it falls with the label's texts."""
    p = Propensities({"all": 10_000, "some": 10, "one": 1}, 10_000)
    assert p.of("all") == pytest.approx(1 / (1 + (math.log(10_000) - 1) * 2.5**0.55 * 10_001.5**-0.55))
    assert p.of("all") > p.of("some") > p.of("one") > p.of("none")


def test_what_has_no_score_is_refused():
    p = Propensities({"a": 1}, 10)
    with pytest.raises(DataError, match="2 rankings for 1 texts"):
        propensity_precision_at(1, [["a"], ["a"]], [["a"]], p)
    with pytest.raises(DataError, match="1 rankings for 1 texts"):
        propensity_precision_at(1, [["a"]], [[]], p)


@pytest.mark.parametrize("texts", [0, 1])
def test_fewer_than_two_texts_have_no_propensities(texts):
    """With one text C is -(B + 1)^A, and a label of one text would have 1 / 0."""
    with pytest.raises(DataError, match=f"propensities from {texts} texts"):
        Propensities({"a": 1}, texts)


def test_two_texts_have_propensities_and_constants_without_any_are_refused():
    p = Propensities({"a": 1, "b": 2}, 2)
    found = propensity_precision_at(1, [["a"], ["b"]], [["a"], ["a", "b"]], p)
    worth = {name: 1 + (math.log(2) - 1) * 2.5**0.55 * (count + 1.5) ** -0.55 for name, count in (("a", 1), ("b", 2))}
    assert found.score == pytest.approx((worth["a"] + worth["b"]) / (worth["a"] + max(worth.values())), abs=1e-12)
    for a, b in ((0.55, 0.0), (1.0, 0.01), (0.55, -1.0)):
        with pytest.raises(DataError, match=f"A {a} and B {b} from 2 texts"):
            Propensities({"a": 1}, 2, a, b)
