"""New items: vectors of texts, and the projection against scikit-learn's ridge regression."""

import numpy as np
import pytest

from orrery.errors import UsageError
from orrery.tasks.next_items.cold import PENALTY, Projection, WordVectors, split_known


@pytest.mark.parametrize("numbers", [4, 40])
def test_the_projection_is_a_ridge_regression(numbers):
    linear = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(numbers)
    x, rows, others = rng.normal(size=(12, numbers)), rng.normal(size=(12, 3)), rng.normal(size=(5, numbers))
    table = {str(n): row for n, row in enumerate([*x, *others])}
    found = Projection(lambda texts: np.array([table[t] for t in texts]), [str(n) for n in range(12)], rows)
    centred = x - x.mean(0)
    oracle = linear.Ridge(alpha=PENALTY * (centred**2).sum(1).mean()).fit(x, rows)
    assert found([str(12 + n) for n in range(5)]) == pytest.approx(oracle.predict(others), abs=1e-9)


def test_a_new_item_lies_where_its_words_lie():
    things, makers = ["tent", "lamp", "rope", "mug"], ["oak", "elm", "fir", "ivy"]
    rng = np.random.default_rng(0)
    thing, maker = {t: rng.normal(size=6) for t in things}, {m: rng.normal(size=6) for m in makers}
    pairs = [(t, m) for t in things for m in makers if (t, m) != ("mug", "ivy")]
    texts = [f"a {t} made by {m}" for t, m in pairs]
    rows = np.array([thing[t] + maker[m] for t, m in pairs])
    new = Projection(WordVectors(texts), texts, rows)(["a mug made by ivy"])[0]
    wanted = thing["mug"] + maker["ivy"]
    near = min(pairs, key=lambda pair: np.linalg.norm(thing[pair[0]] + maker[pair[1]] - wanted))
    assert np.linalg.norm(new - wanted) < np.linalg.norm(thing[near[0]] + maker[near[1]] - wanted)


def test_vectors_of_words_have_length_one_or_none():
    found = WordVectors(["a tent", "a lamp", "a tent of oak"])(["a tent", "unheard"])
    assert np.linalg.norm(found, axis=1) == pytest.approx([1.0, 0.0])


def test_too_few_known_items_are_refused():
    with pytest.raises(UsageError, match="1 items that the model knows have a text"):
        Projection(WordVectors(["a"]), ["a"], np.zeros((1, 2)))


def test_known_and_new_items_are_told_apart():
    assert split_known({"a": "x", "b": "y"}, {"b": 1}) == (["b"], ["a"])
