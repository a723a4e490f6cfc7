"""Classifiers of labels against another solver, in float64, and the ranker and its tree against plain loops."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from orrery.data.many_labels.features import sparse_rows
from orrery.tasks.xbert.baselines import neighbours, one_versus_rest, popular
from orrery.tasks.xbert.linear import Block, hinged, squared_hinge
from orrery.tasks.xbert.ranker import Ranker, fitted, grouped, levels
from orrery.tasks.xbert.xr_linear import tree_of_linear


@pytest.fixture
def problem():
    """Forty texts of ten words with one or two of eight labels, which follow from the words."""
    rng = np.random.default_rng(0)
    table = (rng.random((40, 10)) < 0.4) * rng.random((40, 10))
    labels = [sorted({int(row[:8].argmax()), int(row[2:].argmax()) % 8}) for row in table]
    rows = sparse_rows(({c: v for c, v in enumerate(row) if v} for row in table), 10)
    return rows.beside(torch.zeros(40, 0)), labels


def full(rows):
    return rows.tensor().to_dense()


def by_scipy(x, right, cost):
    signs = right * 2 - 1

    def loss(flat):
        w = flat.reshape(x.shape[1], right.shape[1])
        faults = np.maximum(0, 1 - signs * (x @ w))
        gradient = w - 2 * cost * x.T @ (signs * faults)
        return (w**2).sum() / 2 + cost * (faults**2).sum(), gradient.ravel()

    found = minimize(loss, np.zeros(x.shape[1] * right.shape[1]), jac=True, method="L-BFGS-B", options={"ftol": 1e-15})
    return found.x.reshape(x.shape[1], right.shape[1])


@pytest.mark.parametrize("cost", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("seed", range(3))
def test_the_squared_hinge_is_at_its_least(seed, cost):
    rng = np.random.default_rng(seed)
    x, right = rng.normal(size=(30, 6)), (rng.random((30, 4)) < 0.3).astype(float)
    found = squared_hinge(torch.from_numpy(x), torch.from_numpy(right), cost)
    assert found.numpy() == pytest.approx(by_scipy(x, right, cost), abs=2e-3)


def test_sparse_rows_give_what_full_ones_do(problem):
    rows, labels = problem
    right = torch.zeros(40, 8)
    for number, own in enumerate(labels):
        right[number, own] = 1
    assert torch.allclose(squared_hinge(rows.tensor(), right), squared_hinge(full(rows), right), atol=1e-3)


def test_a_block_scores_the_columns_it_knows():
    rng = np.random.default_rng(0)
    whole = np.zeros((20, 3), np.float32)
    columns = np.array([2, 5, 11])
    whole[columns] = rng.normal(size=(3, 3))
    block = Block(columns, whole[columns])
    for own in ([2, 11], [0, 5, 19], [19], []):
        values = rng.random(len(own)).astype(np.float32)
        wanted = values @ whole[own] if own else np.zeros(3)
        assert block.scores(np.array(own, np.int64), values) == pytest.approx(wanted, abs=1e-6)
    assert (
        Block(np.zeros(0, np.int64), np.zeros((0, 3), np.float32)).scores(columns, whole[columns, 0]).tolist()
        == [0] * 3
    )


def test_a_group_learns_from_its_texts_and_from_those_that_are_taken_for_it(problem):
    rows, labels = problem
    members = grouped([0, 0, 0, 1, 1, 1, 2, 2])
    taken = [[number % 3] for number in range(40)]
    ranker = fitted(rows, labels, members, taken)
    for group, own in enumerate(members):
        some = [n for n in range(40) if set(labels[n]) & set(own.tolist()) or n % 3 == group]
        right = torch.tensor([[float(label in labels[n]) for label in own.tolist()] for n in some])
        weights = squared_hinge(full(rows)[some], right).numpy()
        for number in range(5):
            score = full(rows)[number].numpy() @ weights
            assert ranker.blocks[group].scores(*rows.row(number)) == pytest.approx(score, abs=2e-3)


def test_ranking_is_the_sum_of_both_logarithms_and_equal_ones_stand_in_order():
    rng = np.random.default_rng(0)
    rows = sparse_rows([{0: 1.0, 2: 0.5}], 3)
    members = [np.array([0, 3]), np.array([1, 2]), np.array([4])]
    weights = [rng.normal(size=(3, len(own))).astype(np.float32) for own in members]
    ranker = Ranker(members, [Block(np.arange(3), each) for each in weights])
    found = dict(ranker.within(rows, 0, [(0, -0.1), (1, -2.0)], 9))
    assert set(found) == {0, 1, 2, 3}
    for group, score in ((0, -0.1), (1, -2.0)):
        for place, label in enumerate(members[group].tolist()):
            own = weights[group][0, place] + 0.5 * weights[group][2, place]
            assert found[label] == pytest.approx(score - max(0, 1 - own) ** 3, abs=1e-5)
    same = Ranker(members, [Block(np.arange(3), np.zeros((3, len(own)), np.float32)) for own in members])
    assert [label for label, _ in same.within(rows, 0, [(1, 0.0), (0, 0.0)], 3)] == [0, 1, 2]
    assert same.read([0, 2]) == 3
    assert hinged(np.array([2.0, 1.0, 0.0, -1.0])).tolist() == [0, 0, -1, -8]


def test_a_beam_as_wide_as_the_tree_finds_the_best_of_all(problem):
    rows, labels = problem
    members = grouped([0, 0, 1, 1, 2, 2, 3, 3])
    tree = tree_of_linear(rows, labels, members)
    found = tree.rank(rows, 8, beam=4)
    for number in range(40):
        top = hinged(tree.levels[0].blocks[0].scores(*rows.row(number)))
        wanted = {
            int(label): top[group] + low
            for group, own in enumerate(members)
            for label, low in zip(own, hinged(tree.levels[1].blocks[group].scores(*rows.row(number))), strict=True)
        }
        assert dict(found[number]) == pytest.approx(wanted, abs=1e-5)
    right = [found[number][0][0] in labels[number] for number in range(40)]
    assert sum(right) > 30


def test_a_tree_has_levels_until_one_group_holds_all():
    shapes = [[len(group) for group in level] for level in levels([np.zeros(1)] * 40, 4)]
    assert shapes == [[3], [4, 4, 2], [4] * 10]
    assert list(levels([np.zeros(1)] * 1)) == []


def test_simple_methods_are_as_defined(problem):
    rows, labels = problem
    counts = [sum(label in own for own in labels) for label in range(8)]
    assert [label for label, _ in popular(labels, 1, 8)[0]] == sorted(range(8), key=lambda n: (-counts[n], n))
    x = full(rows)
    for number, found in enumerate(neighbours(rows, labels, rows, 8, k=5)):
        cosines = x @ x[number]
        order = cosines.argsort(descending=True)
        if cosines[order[4]] - cosines[order[5]] < 1e-4:  # equal ones are any of them
            continue
        near = order[:5].tolist()
        wanted = {}
        for place in near:
            for label in labels[place]:
                wanted[label] = wanted.get(label, 0) + float(cosines[place])
        assert {label: np.exp(score) for label, score in found} == pytest.approx(wanted, abs=1e-4)
    right = torch.tensor([[float(label in own) for label in range(8)] for own in labels])
    scores = x @ squared_hinge(x, right)
    found = one_versus_rest(rows, labels, 8, rows, 1)
    agree = [each[0][0] == int(own.argmax()) for each, own in zip(found, scores, strict=True)]
    assert sum(agree) >= 39  # two solvers of one problem stop at slightly different places
