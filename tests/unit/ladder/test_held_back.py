"""Which documents the loss of a ladder is measured on."""

import numpy as np
import pytest

from orrery.compare.texts import Texts
from orrery.data.documents import Portion
from orrery.data.records import Document
from orrery.data.sources.text import TextSource
from orrery.ladder.run import held_back, shortened
from tiny_models import TOKENIZER


def texts(*lengths: int) -> Texts:
    """Return held-back documents of so many characters, a token each, and one that ends them."""
    documents = [Document(str(number), "e" * length) for number, length in enumerate(lengths)]
    source = TextSource([Portion("all", 1.0, [Document("train", "e")])], documents)
    ids = [np.zeros(length + 1, np.uint32) for length in lengths]
    return Texts(source, TOKENIZER, [], ids, source)


@pytest.mark.parametrize(
    ("lengths", "asked", "chosen"),
    [
        ([9] * 8, 20, [10, 10]),  # every fourth
        ([9] * 8, 1_000_000, [10] * 8),
        ([0, 9, 9, 0, 9], 1, [10]),  # an empty one says nothing
        ([1, 999, 1, 999], 1_000, [2, 1_000, 2, 1_000]),  # every second alone would be four tokens
    ],
)
def test_documents_at_even_distances_have_about_as_many_tokens_as_asked(lengths, asked, chosen):
    found = held_back(texts(*lengths), asked)
    assert [len(ids) for ids in found.ids] == chosen
    assert found.bytes == sum(length - 1 for length in chosen)


def test_the_speed_is_measured_with_a_document_that_has_text():
    assert [document.name for document in shortened(texts(0, 9, 9).source).held_back] == ["1"]
