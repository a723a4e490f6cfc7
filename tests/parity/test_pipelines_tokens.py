"""Entities equal the reference's: labels, scores, words and places, for every way to group tokens."""

import warnings

import pytest

from orrery.errors import UsageError
from tests.parity.pipelines import LABELS, TEXTS, generated, named, pair, same

AUTO = "AutoModelForTokenClassification"
KINDS = ["bert", "roberta", "distilbert", "electra", "deberta-v2", "modernbert"]
STRATEGIES = ["none", "simple", "first", "average", "max"]


def expected(theirs, inputs, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return theirs(inputs, **settings)


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_and_entities(kind, tmp_path):
    theirs, ours = pair(tmp_path, kind, AUTO, "ner", context=96, **named(LABELS))
    for strategy in STRATEGIES:
        for ignored in (["O"], [], ["O", "B-PER", "PER"]):
            settings = {"aggregation_strategy": strategy, "ignore_labels": ignored}
            answers = expected(theirs, TEXTS, **settings)
            for size in (1, 4):
                same(ours(TEXTS, batch_size=size, **settings), answers)
            same(ours(TEXTS[2], **settings), answers[2])
            same(list(ours(generated(TEXTS), **settings)), answers)


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2"])
def test_words_that_are_given(kind, tmp_path):
    theirs, ours = pair(tmp_path, kind, AUTO, "token-classification", **named(LABELS))
    words = [["Ada", "Lovelace", "wrote", "to", "日本"], ["unbelievable", "Öl"]]
    for strategy in STRATEGIES:
        settings = {"aggregation_strategy": strategy, "is_split_into_words": True}
        same(ours(words, **settings), expected(theirs, words, **settings))
        same(ours(words[0], delimiter="_", **settings), expected(theirs, words[0], delimiter="_", **settings))


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2"])
@pytest.mark.parametrize("stride", [0, 1, 5])
def test_windows_over_a_long_text(kind, stride, tmp_path):
    theirs, ours = pair(tmp_path, kind, AUTO, "token-classification", context=20, **named(LABELS))
    long = " ".join(TEXTS)
    for strategy in STRATEGIES[1:]:
        settings = {"aggregation_strategy": strategy, "stride": stride, "ignore_labels": []}
        same(ours([long, "Ada"], batch_size=3, **settings), expected(theirs, [long, "Ada"], **settings))
    same(ours(long, truncation=True), expected(theirs, long))


def test_what_is_refused(tmp_path):
    _, ours = pair(tmp_path, "bert", AUTO, "token-classification", context=20, **named(LABELS))
    with pytest.raises(UsageError, match="longer than this model's context of 20") as refused:
        ours(" ".join(TEXTS))
    assert "stride" in refused.value.hint
    for settings in ({"stride": 2}, {"stride": 18, "aggregation_strategy": "first"}, {"aggregation_strategy": "mean"}):
        with pytest.raises(UsageError):
            ours(" ".join(TEXTS), **settings)
    with pytest.raises(UsageError, match="lists of words"):
        ours(["Ada", 3], is_split_into_words=True)
    with pytest.raises(UsageError, match="no head 'sequence'"):
        ours("Ada", head="sequence")
