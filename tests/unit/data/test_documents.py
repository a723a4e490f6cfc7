"""What a tokenizer does not know of a text is said from one token in a thousand on."""

from types import SimpleNamespace

import numpy as np
import pytest

from orrery.data.documents import unknown_share

UNKNOWN = 3


@pytest.mark.parametrize(
    ("tokens", "unknown", "share"),
    [
        (0, 0, None),
        (1000, 0, None),
        (1001, 1, None),
        (1000, 1, "0.1%"),
        (1999, 1, None),
        (2000, 2, "0.1%"),
        (100, 25, "25.0%"),
        (1, 1, "100.0%"),
    ],
)
def test_one_token_in_a_thousand_is_said_and_fewer_are_not(tokens, unknown, share):
    ids = np.full(tokens, UNKNOWN + 1, np.uint32)
    ids[:unknown] = UNKNOWN
    rows = [ids[: tokens // 2], ids[tokens // 2 :].tolist()]
    said = f"{share} of the training tokens stand for text that the tokenizer does not know"
    assert unknown_share(SimpleNamespace(unknown_id=UNKNOWN), rows) == ([] if share is None else [said])
    assert unknown_share(SimpleNamespace(unknown_id=None), rows) == []
