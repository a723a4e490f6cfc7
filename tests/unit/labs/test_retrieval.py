"""The lab on one-hot and dense retrieval."""

import json
from dataclasses import replace

import pytest

from orrery.errors import RunError
from orrery.labs import retrieval


def test_one_hot_does_not_find_the_hotel_and_dense_does():
    finding = retrieval.run()
    # Seattle is matched in every document, motel in none.
    assert set(finding.one_hot.values()) == {0.5}
    ranked = sorted(finding.dense, key=finding.dense.__getitem__, reverse=True)
    assert ranked[0] == retrieval.SOUGHT
    assert finding.dense[ranked[0]] - finding.dense[ranked[1]] > 0.2
    assert finding.figure.startswith("<svg")
    assert retrieval.run() == finding


def test_the_check_fails_where_dense_vectors_do_not_help():
    finding = retrieval.run()
    with pytest.raises(RunError, match="dense"):
        replace(finding, dense=finding.one_hot | {"Seattle rain": 0.6}).check()


def test_the_words_are_the_slides(data_set):
    slide = json.loads(data_set("course-slides/slides.json").read_text(encoding="utf-8"))["retrieval"]
    assert (slide["query"], slide["document"]) == (retrieval.QUERY, retrieval.SOUGHT)
