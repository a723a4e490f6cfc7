import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.data.cleaning.duplicates import ExactDuplicates, Numbered
from orrery.data.corpora import Document
from orrery.errors import DataError


def kept(texts: list[str], **how: bool) -> list[int]:
    rule = ExactDuplicates(**how)
    return [i for i, text in enumerate(texts, start=1) if rule(i, Document(str(i), text)) is None]


@given(st.lists(st.text("ab ", max_size=3), max_size=300))
def test_the_first_of_each_text_stays(texts: list[str]) -> None:
    assert kept(texts) == [i for i, text in enumerate(texts, start=1) if text not in texts[: i - 1]]


@given(st.lists(st.text("ab \n\t", max_size=4), max_size=200))
def test_white_space_can_count_for_nothing(texts: list[str]) -> None:
    plain = [" ".join(text.split()) for text in texts]
    assert kept(texts, whitespace=False) == kept(plain)


def test_the_reason_names_the_first() -> None:
    rule = ExactDuplicates()
    assert [rule(n, Document("", text)) for n, text in enumerate("abcb", start=1)][3] == "the same text as document 2"
    assert rule(2**32 - 2, Document("", "new")) is None
    with pytest.raises(DataError, match="4,294,967,294 documents"):
        rule(2**32 - 1, Document("", "newer"))


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 2**32 - 2)), max_size=400))
def test_the_table_is_a_dictionary(pairs: list[tuple[int, int]]) -> None:
    """Keys that share their place in the table, and several sizes of it."""
    table, model = Numbered(), {}
    for key, number in pairs:
        digest = (64 * (key % 3)).to_bytes(8, "little") + key.to_bytes(4, "little")
        assert table.get(digest) == model.get(digest)
        assert table.swap(digest, number) == model.get(digest)
        model[digest] = number
    assert table.size == len(model)
    assert all(table.get(key) == number for key, number in model.items())


def test_memory_is_that_of_the_table() -> None:
    digests = np.random.default_rng(0).integers(0, 256, (3_000, 12), np.uint8)
    tracemalloc.start()
    table = Numbered()
    for number, digest in enumerate(digests):
        table.swap(digest.tobytes(), number)
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert used / len(digests) < 43
