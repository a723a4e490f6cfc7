"""Clusters by words beside the encoder's likelihoods, against plain formulas; old files, where there are none."""

import json

import numpy as np
import pytest
import torch

from orrery.checkpoints.tensors import read_tensors, write_tensors
from orrery.data.many_labels.features import TfIdf, sparse_rows
from orrery.errors import ModelFileError
from orrery.tasks.xbert.linear import squared_hinge
from orrery.tasks.xbert.ranker import fitted, grouped
from orrery.tasks.xbert.reading import Matched
from orrery.tasks.xbert.saved import NAMES, NUMBERS, SavedRanker, load, save
from orrery.tasks.xbert.words import clusters_by_words

CLUSTER_OF = [0, 0, 1, 1, 2, 2]


@pytest.fixture
def problem():
    """Thirty texts of seven words with one or two of six labels in three clusters, and an encoder's word on each."""
    rng = np.random.default_rng(0)
    table = ((rng.random((30, 7)) < 0.5) * rng.random((30, 7))).astype(np.float32)
    labels = [sorted({int(row[:6].argmax()), int(row[1:].argmax())}) for row in table]
    rows = sparse_rows(({c: float(v) for c, v in enumerate(row) if v} for row in table), 7)
    likely = torch.from_numpy(rng.normal(size=(30, 3)).astype(np.float32)).log_softmax(-1)
    return table, rows, labels, [Matched(each, torch.ones(2)) for each in likely]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7])
def test_the_sum_of_both_logarithms(problem, share):
    table, rows, labels, found = problem
    words = clusters_by_words(rows, labels, CLUSTER_OF, share)
    x = torch.from_numpy(np.c_[table, np.ones(30, np.float32)])
    right = torch.tensor([[float(any(CLUSTER_OF[label] == c for label in own)) for c in range(3)] for own in labels])
    said = -((1 - x @ squared_hinge(x, right)).clamp(min=0) ** 3)
    for number, each in enumerate(words.beside(rows, found)):
        wanted = share * found[number].log_p_Z + (1 - share) * said[number]
        assert each.log_p_Z.tolist() == pytest.approx(wanted.tolist(), abs=5e-3)
        assert each.vector_E is found[number].vector_E


def test_a_share_of_one_leaves_the_encoder_as_it_is(problem):
    _, rows, labels, found = problem
    mixed = clusters_by_words(rows, labels, CLUSTER_OF, 1.0).beside(rows, found)
    assert all(torch.equal(a.log_p_Z, b.log_p_Z) for a, b in zip(mixed, found, strict=True))


def test_a_ranker_comes_back_from_its_files_and_old_ones_have_the_encoder_alone(problem, tmp_path):
    _, rows, labels, found = problem
    vectors = rows.beside(torch.ones(30, 2))
    features = TfIdf.learned(["a b c d e f g"])
    ranker = fitted(vectors, labels, grouped(CLUSTER_OF), ())
    words = clusters_by_words(rows, labels, CLUSTER_OF, 0.4)
    save(tmp_path, SavedRanker(list("uvwxyz"), features, ranker, 8, words))
    again = load(tmp_path)
    assert again.words.share == 0.4
    for one, other in zip(words.beside(rows, found), again.words.beside(rows, found), strict=True):
        assert torch.equal(one.log_p_Z, other.log_p_Z)
    names, numbers = json.loads((tmp_path / NAMES).read_text()), read_tensors(tmp_path / NUMBERS)
    for change, message in (({"encoder_share": 2}, "from 0 to 1"), ({"encoder_share": "x"}, "from 0 to 1")):
        (tmp_path / NAMES).write_text(json.dumps({**names, **change}))
        with pytest.raises(ModelFileError, match=message):
            load(tmp_path)
    (tmp_path / NAMES).write_text(json.dumps(names))
    write_tensors(tmp_path / NUMBERS, {**numbers, "cluster_weights": torch.zeros(8, 2)})
    with pytest.raises(ModelFileError, match="for 8 columns and 3 clusters"):
        load(tmp_path)
    old = {name: tensor for name, tensor in numbers.items() if not name.startswith("cluster")}
    write_tensors(tmp_path / NUMBERS, old)
    names.pop("encoder_share")
    (tmp_path / NAMES).write_text(json.dumps({**names, "version": 1}))
    mixed = load(tmp_path).words.beside(rows, found)
    assert all(torch.equal(a.log_p_Z, b.log_p_Z) for a, b in zip(mixed, found, strict=True))
