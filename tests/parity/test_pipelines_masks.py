"""Filled masks equal the reference's: tokens, scores, texts, several masks, targets."""

import pytest

from orrery.errors import DataError, UsageError
from tests.parity.pipelines import generated, pair, same

AUTO = "AutoModelForMaskedLM"
KINDS = ["bert", "roberta", "distilbert", "electra", "deberta-v2", "modernbert"]
TEXTS = ["The cat sat near <>.", "Ada <>", "<> Öl in 日本 🙂 & new", "<>"]
SEVERAL = ["The <> sat on the <>, near London", "<><> x"]


@pytest.mark.parametrize("kind", KINDS)
def test_masks(kind, tmp_path):
    theirs, ours = pair(tmp_path, kind, AUTO, "fill-mask", context=96)
    mask = theirs.tokenizer.mask_token
    texts, several = ([text.replace("<>", mask) for text in some] for some in (TEXTS, SEVERAL))
    for settings in (
        {},
        {"top_k": 1},
        {"top_k": 12},
        {"targets": [theirs.tokenizer.convert_ids_to_tokens(n) for n in (30, 17, 40)]},
    ):
        expected = theirs(texts, **settings)
        for size in (1, 3):
            same(ours(texts, batch_size=size, **settings), expected)
        same(ours(texts[0], **settings), theirs(texts[0], **settings))
        same(ours(texts[:1], **settings), theirs(texts[:1], **settings))
        same(list(ours(generated(texts), **settings)), expected)
        for text in several:
            same(ours(text, **settings), theirs(text, **settings))
    long = texts[0] + " Ada wrote" * 60
    same(ours(long, truncation=True), theirs(long, tokenizer_kwargs={"truncation": True}))


def test_what_is_refused(tmp_path):
    _, ours = pair(tmp_path, "bert", AUTO, "fill-mask")
    for text in ("no mask", "", "[MASK] " + "Ada wrote " * 40):
        with pytest.raises(UsageError):
            ours(text)
    with pytest.raises(DataError, match=r"control token \[SEP\]"):
        ours("a [MASK] [SEP] b")
    for settings in ({"top_k": 0}, {"targets": []}, {"targets": "Lovelace Babbage"}, {"head": "sequence"}):
        with pytest.raises(UsageError):
            ours("a [MASK]", **settings)
