"""A concordance shows every place, cut at the sentence and at the window."""

import pytest

from orrery.errors import UsageError
from orrery.models.word2vec.concordance import Occurrence, concordance


def test_every_place_is_shown_within_its_sentence():
    text = [["a", "b", "a"], ["c"], ["b", "c", "d", "a"]]
    assert list(concordance(text, "a", 2)) == [
        Occurrence((), "a", ("b", "a"), 0),
        Occurrence(("a", "b"), "a", (), 0),
        Occurrence(("c", "d"), "a", (), 2),
    ]
    assert list(concordance(text, "x")) == []
    with pytest.raises(UsageError, match="window"):
        list(concordance(text, "a", 0))
