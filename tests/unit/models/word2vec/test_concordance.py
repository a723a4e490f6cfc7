"""A concordance shows every place, cut at the sentence and at the window."""

import pytest

from orrery.errors import UsageError
from orrery.models.word2vec.concordance import Place, concordance


def test_every_place_is_shown_within_its_sentence():
    text = [["a", "b", "a"], ["c"], ["b", "c", "d", "a"]]
    assert list(concordance(text, "a", 2)) == [
        Place((), "a", ("b", "a"), 0),
        Place(("a", "b"), "a", (), 0),
        Place(("c", "d"), "a", (), 2),
    ]
    assert list(concordance(text, "x")) == []
    with pytest.raises(UsageError, match="window"):
        list(concordance(text, "a", 0))
