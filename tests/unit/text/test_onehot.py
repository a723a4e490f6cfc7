"""One-hot vectors: they select rows, and know nothing of what words mean."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.errors import DataError, UsageError
from orrery_course.tables.onehot import one_hot, relevance, similarities


@given(st.lists(st.integers(0, 8), max_size=6), st.integers(0, 5))
def test_the_product_with_a_table_is_a_look_up_bit_for_bit(ids, seed):
    table = np.random.default_rng(seed).normal(size=(9, 4))
    product, rows = one_hot(ids, 9) @ table, table[np.array(ids, dtype=int)]
    assert (product.view(np.int64) == rows.view(np.int64)).all()


def test_two_words_are_at_a_right_angle_whatever_they_mean():
    motel, hotel = one_hot([3, 7], 15)
    assert motel @ hotel == 0.0
    assert motel @ motel == 1.0


def test_relevance_by_hand():
    query, document = np.array([[1.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 2.0], [5.0, 0.0], [0.0, 0.0]])
    assert np.allclose(similarities(query, document), [[0, 1, 0], [0.8, 0.6, 0]])
    assert relevance(query, document) == pytest.approx(0.9)


def test_what_has_no_vector_is_refused():
    for bad in (-1, 4):
        with pytest.raises(DataError, match=f"word id {bad} is outside the vocabulary of 4"):
            one_hot([0, bad], 4)
    with pytest.raises(UsageError, match="need one word"):
        relevance(one_hot([], 4), one_hot([1], 4))
