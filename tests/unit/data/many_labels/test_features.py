"""TF-IDF rows against the formula in plain loops, and rows with few numbers against full matrices."""

import math

import numpy as np
import pytest
import torch

from orrery.data.many_labels.features import TfIdf, features_of, sparse_rows

TEXTS = ["the cat sat on the mat", "The dog sat.", "a cat, a dog, a cat", "mat"]


def full(rows):
    table = np.zeros((len(rows), rows.width), np.float32)
    for number in range(len(rows)):
        columns, values = rows.row(number)
        table[number, columns] = values
    return table


@pytest.fixture
def random_rows():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(7, 9)) * (rng.random((7, 9)) < 0.4)
    table[3] = 0
    return sparse_rows(({c: v for c, v in enumerate(row) if v} for row in table), 9), table.astype(np.float32)


def test_weights_are_those_of_the_formula():
    features = TfIdf.learned(TEXTS)
    rows = full(features.rows(TEXTS))
    for text, row in zip(TEXTS, rows, strict=True):
        words = features_of(text, 1)
        wanted = np.zeros(len(features.numbers))
        for word in set(words):
            held = sum(word in features_of(other, 1) for other in TEXTS)
            wanted[features.numbers[word]] = (1 + math.log(words.count(word))) * math.log(len(TEXTS) / held)
        assert row == pytest.approx(wanted / np.linalg.norm(wanted), abs=1e-6)


def test_rare_words_are_left_out_and_the_most_frequent_kept():
    assert list(TfIdf.learned(TEXTS, least=2).numbers) == ["cat", "dog", "mat", "sat", "the"]
    assert list(TfIdf.learned(TEXTS, most=2).numbers) == ["cat", "dog"]
    assert "cat sat" in TfIdf.learned(TEXTS, words=2).numbers
    assert features_of("A b, c", 3) == ["a", "b", ",", "c", "a b", "b ,", ", c", "a b ,", "b , c"]


def test_a_text_of_unknown_words_has_an_empty_row():
    rows = TfIdf.learned(TEXTS).rows(["xyz", "cat"])
    assert len(rows.row(0)[0]) == 0
    assert rows.row(1)[1].tolist() == [1.0]


def test_rows_are_taken_narrowed_and_set_beside_others(random_rows):
    rows, table = random_rows
    assert (full(rows) == table).all()
    assert (full(rows.taken(np.array([5, 3, 5, 0]))) == table[[5, 3, 5, 0]]).all()
    narrow, columns = rows.taken(np.array([1, 3])).narrowed()
    assert columns.tolist() == np.flatnonzero(table[[1, 3]].any(0)).tolist()
    assert (narrow.numpy() == table[[1, 3]][:, columns]).all()
    more = torch.randn(7, 3)
    wanted = np.concatenate([table, more.numpy(), np.ones((7, 1), np.float32)], 1)
    assert (full(rows.beside(more)) == wanted).all()
    matrix = torch.randn(9, 4)
    assert torch.allclose(rows.times(matrix), torch.from_numpy(table) @ matrix, atol=1e-6)
