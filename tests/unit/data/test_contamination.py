"""What of a test set stands in a training text."""

import numpy as np

from orrery.data.cleaning.contamination import overlap
from orrery.data.records import Document

LONG = " ".join(f"word{number}" for number in range(20))
OTHER = " ".join(f"other{number}" for number in range(20))


def test_thirteen_shared_words_are_enough_whatever_stands_between_them() -> None:
    shared = ", ".join(f"WORD{number}" for number in range(3, 16))
    result = overlap([LONG, OTHER], [Document("a", f"Before. {shared}! After.")])
    assert result.seen.tolist() == [True, False]
    assert np.isclose(result.long[0], 1 / 8)


def test_twelve_shared_words_are_not_thirteen() -> None:
    shared = " ".join(f"word{number}" for number in range(12))
    result = overlap([LONG], [Document("a", shared)])
    assert result.long.tolist() == [0.0]
    assert np.isclose(result.short[0], 5 / 13)
    assert not result.seen[0]


def test_seventy_percent_of_runs_of_eight_are_enough() -> None:
    item = " ".join(f"word{number}" for number in range(12))  # five runs of eight, none of thirteen
    near = " ".join(f"word{number}" for number in range(11))
    result = overlap([item], [Document("a", near)])
    assert np.isnan(result.long[0])
    assert np.isclose(result.short[0], 4 / 5)
    assert result.seen[0]


def test_short_items_are_found_as_lines_and_otherwise_not_known() -> None:
    result = overlap(["Who hugged Erin?", "Who saw Ann?"], [Document("a", "x\n  who HUGGED  Erin?\ny")])
    assert result.lines.tolist() == [True, False]
    assert result.seen.tolist() == [True, False]
    assert result.unknown.tolist() == [False, True]
    assert "1 are whole lines; 1 have fewer than 8 words" in str(result)


def test_a_short_document_is_no_run_of_a_longer_item() -> None:
    result = overlap([LONG], [Document("a", "word0 word1"), Document("b", "")])
    assert not result.seen[0]


def test_no_items() -> None:
    assert overlap([], [Document("a", LONG)]).seen.tolist() == []
