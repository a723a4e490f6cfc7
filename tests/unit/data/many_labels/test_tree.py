"""The tree over labels: halves of equal size, like labels together, vectors as their formula says."""

import numpy as np
import pytest
import torch

from orrery.data.many_labels.features import sparse_rows
from orrery.data.many_labels.tree import clusters, label_vectors


@pytest.mark.parametrize(("count", "most"), [(2, 1), (7, 2), (50, 50), (100, 9), (64, 8), (5, 1)])
def test_clusters_are_small_and_of_like_size(count, most):
    found = clusters(torch.randn(count, 5, generator=torch.Generator().manual_seed(count)), most, 0)
    sizes = torch.bincount(found)
    assert sizes.max() <= most
    assert sizes.max() - sizes.min() <= 1
    assert sizes.min() >= 1


@pytest.mark.parametrize("seed", range(3))
def test_like_labels_stand_together(seed):
    rng = torch.Generator().manual_seed(seed)
    centres = torch.nn.functional.normalize(torch.randn(2, 20, generator=rng), dim=1)
    group = torch.randperm(40, generator=rng) % 2
    vectors = torch.nn.functional.normalize(centres[group] + 0.05 * torch.randn(40, 20, generator=rng), dim=1)
    found = clusters(vectors, 20, seed)
    assert found.unique().tolist() == [0, 1]
    assert torch.equal(found, group) or torch.equal(found, 1 - group)


def test_the_same_seed_gives_the_same_tree():
    vectors = torch.randn(60, 8, generator=torch.Generator().manual_seed(1))
    assert torch.equal(clusters(vectors, 8, 3), clusters(vectors, 8, 3))
    assert not torch.equal(clusters(vectors, 8, 3), clusters(vectors, 8, 4))


def test_the_cosines_of_vectors_are_about_those_of_the_sums_of_texts():
    rng = np.random.default_rng(0)
    table = rng.random((60, 300)) * (rng.random((60, 300)) < 0.1)
    labels = [rng.choice(8, 2, replace=False).tolist() for _ in range(60)]
    rows = sparse_rows(({c: v for c, v in enumerate(row) if v} for row in table), 300)
    found = label_vectors(rows, labels, 9, 0)
    sums = np.stack([table[[label in own for own in labels]].sum(0) for label in range(8)])
    sums /= np.linalg.norm(sums, axis=1, keepdims=True)
    assert (found[:8] @ found[:8].T).numpy() == pytest.approx(sums @ sums.T, abs=0.25)
    assert found.norm(dim=1).tolist() == pytest.approx([1.0] * 9, abs=1e-5)  # the last label has no text
