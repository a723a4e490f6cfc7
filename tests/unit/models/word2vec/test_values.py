"""Loss and gradient of the six models: hand formulas, autograd, the kernel and finite steps agree in float64."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from orrery.models.word2vec import definition
from orrery.models.word2vec.draws import Contexts, Targets
from orrery.models.word2vec.huffman import HuffmanPaths
from orrery.models.word2vec.objectives import FullSoftmax, HierarchicalSoftmax, NegativeSampling
from orrery.models.word2vec.plain import descend_by_definition
from orrery.models.word2vec.vocabulary import Vocabulary

WORDS, WIDTH, WORD = 6, 16, 4
COUNTS = np.array([9, 7, 5, 3, 2, 2])
VOCABULARY = Vocabulary(tuple("abcdef"), COUNTS)
READ = {"skip_gram": [2], "cbow": [0, 1, 3, 5]}
NEGATIVES = [0, 2, 5]


def tables():
    rng = np.random.default_rng(3)
    return rng.normal(size=(WORDS, WIDTH)), rng.normal(size=(WORDS, WIDTH))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def mean(vectors, read):
    return sum(vectors[k] for k in read) / len(read)


def hand_full(hidden, weights):
    """J = -w_o.h + log sum exp(w_x.h); dJ/dw_x = (p_x - [x = o]) h; dJ/dh = sum_x (p_x - [x = o]) w_x."""
    powers = np.array([np.exp(weights[x] @ hidden) for x in range(WORDS)])
    error = powers / powers.sum()
    loss = -np.log(error[WORD])
    error[WORD] -= 1
    return loss, error @ weights, np.outer(error, hidden)


def hand_negative(hidden, weights):
    """J = -log s(w_o.h) - sum_k log s(-w_k.h), the slide's form with s(-x) = 1 - s(x) beside it."""
    right, wrong = sigmoid(weights[WORD] @ hidden), [sigmoid(weights[k] @ hidden) for k in NEGATIVES]
    loss = -np.log(right) - sum(np.log(1 - p) for p in wrong)
    assert loss == pytest.approx(
        -np.log(right) - sum(np.log(sigmoid(-(weights[k] @ hidden))) for k in NEGATIVES), abs=1e-12
    )
    to_weights = np.zeros_like(weights)
    to_weights[WORD] = (right - 1) * hidden
    to_hidden = (right - 1) * weights[WORD]
    for k, p in zip(NEGATIVES, wrong, strict=True):
        to_weights[k] = p * hidden
        to_hidden = to_hidden + p * weights[k]
    return loss, to_hidden, to_weights


def hand_hierarchical(hidden, weights):
    """p(w) = product of s(+-w_n.h) on the way down; J = -log p(w)."""
    paths = HuffmanPaths(COUNTS)
    begin, end = paths.ends[WORD - 1], paths.ends[WORD]
    loss, to_hidden, to_weights = 0.0, np.zeros(WIDTH), np.zeros((WORDS - 1, WIDTH))
    for node, turn in zip(paths.nodes[begin:end], paths.turns[begin:end], strict=True):
        right = sigmoid(weights[node] @ hidden)
        loss -= np.log(right if turn else 1 - right)
        to_hidden = to_hidden + (right - turn) * weights[node]
        to_weights[node] = (right - turn) * hidden
    return loss, to_hidden, to_weights


def full():
    return FullSoftmax(VOCABULARY), Targets(np.array([WORD], np.int32), np.array([1]), np.array([True]))


def negative():
    rows = np.array([WORD, *NEGATIVES], np.int32)
    return NegativeSampling(VOCABULARY, 3), Targets(rows, np.array([4]), np.arange(4) == 0)


def hierarchical():
    objective = HierarchicalSoftmax(VOCABULARY)
    return objective, objective.targets(np.array([WORD], np.int32), np.uint64(0))


OBJECTIVES = [(full, hand_full), (negative, hand_negative), (hierarchical, hand_hierarchical)]


@pytest.mark.parametrize("read", READ.values(), ids=READ)
@pytest.mark.parametrize(("make", "hand"), OBJECTIVES, ids=["full", "negative", "hierarchical"])
def test_loss_and_gradient_equal_the_hand_formula_and_autograd(make, hand, read):
    vectors, weights = tables()
    objective, targets = make()
    weights = weights[: objective.rows]
    loss, to_hidden, to_weights = hand(mean(vectors, read), weights)
    to_vectors = np.zeros_like(vectors)
    for k in read:
        to_vectors[k] = to_hidden / len(read)
    v, w = (torch.from_numpy(table).requires_grad_() for table in (vectors, weights))
    rows, labels = torch.from_numpy(targets.rows).long(), torch.from_numpy(targets.labels)
    value = objective.loss(definition.hidden(v, torch.tensor(read)), w, rows, labels)
    value.backward()
    assert float(value.detach()) == pytest.approx(loss, abs=1e-9)
    np.testing.assert_allclose(v.grad.numpy(), to_vectors, atol=1e-9)
    np.testing.assert_allclose(w.grad.numpy(), to_weights, atol=1e-9)


@pytest.mark.parametrize("read", READ.values(), ids=READ)
@pytest.mark.parametrize(("make", "hand"), OBJECTIVES, ids=["full", "negative", "hierarchical"])
def test_the_plain_pass_is_one_step_down_the_hand_gradient(make, hand, read):
    vectors, weights = tables()
    objective, targets = make()
    weights = weights[: objective.rows]
    loss, to_hidden, to_weights = hand(mean(vectors, read), weights)
    after_vectors, after_weights = vectors.copy(), weights - 0.1 * to_weights
    for k in read:
        after_vectors[k] -= 0.1 * to_hidden / len(read)
    contexts = Contexts(np.array(read, np.int32), np.array([len(read)]), np.array([WORD], np.int32))
    assert descend_by_definition(objective, vectors, weights, contexts, targets, 0.1) == pytest.approx(loss, abs=1e-9)
    np.testing.assert_allclose(vectors, after_vectors, atol=1e-9)
    np.testing.assert_allclose(weights, after_weights, atol=1e-9)


def many(objective, width, dtype, seed=0):
    """Twenty examples of one to five read words over a vocabulary of six, and tables to start from."""
    rng = np.random.default_rng(seed)
    read = [rng.choice(WORDS, rng.integers(1, 6)) for _ in range(20)]
    words = rng.choice(WORDS, 20).astype(np.int32)
    contexts = Contexts(np.concatenate(read).astype(np.int32), np.cumsum([len(k) for k in read]), words)
    targets = objective.targets(words, np.uint64(seed))
    return (
        rng.normal(size=(WORDS, width)).astype(dtype),
        rng.normal(size=(objective.rows, width)).astype(dtype),
        (
            contexts,
            targets,
        ),
    )


def without_repeats(targets):
    """Drop a row that an example has twice: the two passes differ there by design."""
    ends = np.concatenate([[0], targets.ends])
    kept = [begin + np.unique(targets.rows[begin:end], return_index=True)[1] for begin, end in pairwise(ends)]
    places = np.concatenate([np.sort(k) for k in kept])
    return Targets(targets.rows[places], np.cumsum([len(k) for k in kept]), targets.labels[places])


@pytest.mark.parametrize(("dtype", "bound"), [(np.float64, 1e-12), (np.float32, 1e-5)])
@pytest.mark.parametrize("objective", [NegativeSampling(VOCABULARY, 3), HierarchicalSoftmax(VOCABULARY)])
def test_the_kernel_equals_the_definition(objective, dtype, bound):
    from orrery.kernels.word2vec import descend

    vectors, weights, (contexts, targets) = many(objective, 48, dtype)
    targets = without_repeats(targets)
    v, w = vectors.copy(), weights.copy()
    expected = descend_by_definition(objective, v, w, contexts, targets, 0.05)
    assert descend(vectors, weights, *contexts[:2], *targets, 0.05) == pytest.approx(expected, rel=max(bound, 1e-9))
    np.testing.assert_allclose(vectors, v, atol=bound)
    np.testing.assert_allclose(weights, w, atol=bound)


@pytest.mark.parametrize("size", [1e-3, 30.0, 1e3])
def test_the_kernel_s_loss_is_right_for_scores_of_any_size(size):
    from orrery.kernels.word2vec import descend

    rows = np.arange(WORDS, dtype=np.int32).repeat(200)  # the product of 1200 factors must not overflow
    labels = np.arange(len(rows)) % 2 == 0
    vectors, weights = np.full((1, 16), size / 16), np.tile(np.linspace(-1, 1, WORDS)[:, None], (1, 16))
    scores = np.where(labels, 1, -1) * np.linspace(-1, 1, WORDS)[rows] * size
    loss = descend(vectors, weights, rows[:1] * 0, np.array([1]), rows, np.array([len(rows)]), labels, 0.0)
    assert loss == pytest.approx(np.logaddexp(0, -scores).sum(), rel=1e-12)


def test_hierarchical_probabilities_sum_to_one():
    rng = np.random.default_rng(0)
    counts = np.sort(rng.integers(1, 1000, 50))[::-1]
    paths, vector = HuffmanPaths(counts), torch.from_numpy(rng.normal(size=16))
    weights = torch.from_numpy(rng.normal(size=(49, 16)))
    total = 0.0
    for begin, end in zip(np.concatenate([[0], paths.ends[:-1]]), paths.ends, strict=True):
        rows, labels = weights[paths.nodes[begin:end]], torch.from_numpy(paths.turns[begin:end])
        total += float((-definition.labelled_rows(vector, rows, labels)).exp())
    assert total == pytest.approx(1, abs=1e-12)
