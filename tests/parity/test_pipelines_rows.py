"""Tasks with one answer a text equal the reference's pipelines: classes, entailment, hidden states."""

import pytest

from orrery.errors import DataError, ModelFileError, UsageError
from tests.parity.pipelines import LABELS, TEXTS, generated, named, pair, same

SEQUENCE, BARE = "AutoModelForSequenceClassification", "AutoModel"
ENCODERS = ["bert", "roberta", "distilbert", "electra", "deberta-v2", "modernbert"]


@pytest.mark.parametrize("kind", ENCODERS)
def test_classes_equal_the_reference_alone_in_lists_and_in_batches(kind, tmp_path):
    theirs, ours = pair(tmp_path, kind, SEQUENCE, "text-classification", **named(["bad", "fine", "good"]))
    pairs = [{"text": TEXTS[0], "text_pair": TEXTS[2]}, {"text": "Ada", "text_pair": TEXTS[5]}]
    for text in (*TEXTS, ""):
        same(ours(text), theirs(text))
    same(ours(pairs[0]), theirs(pairs[0]))
    for size in (1, 4):
        expected = theirs([*TEXTS, *pairs], batch_size=1, top_k=None)
        same(ours([*TEXTS, *pairs], batch_size=size, top_k=None), expected)
        same(list(ours(generated(TEXTS), batch_size=size)), theirs(TEXTS))


@pytest.mark.parametrize("settings", [{"top_k": 2}, {"top_k": None}, {"function_to_apply": "sigmoid"}, {}])
@pytest.mark.parametrize("problem", [None, "multi_label_classification", "regression"])
@pytest.mark.parametrize("labels", [1, 3])
def test_the_scores_are_what_the_problem_says(settings, problem, labels, tmp_path):
    names = named([f"L{n}" for n in range(labels)])
    theirs, ours = pair(
        tmp_path, "bert", SEQUENCE, "sentiment-analysis", settings=settings, problem_type=problem, **names
    )
    same(ours(TEXTS[0]), theirs(TEXTS[0]))
    same(ours(TEXTS, batch_size=2), theirs(TEXTS))
    same(ours(TEXTS[0], top_k=1), theirs(TEXTS[0], top_k=1))
    same(ours(TEXTS, function_to_apply="none"), theirs(TEXTS, function_to_apply="none"))


@pytest.mark.parametrize("kind", ["bert", "roberta", "deberta-v2"])
def test_a_longer_text_is_cut_where_that_is_asked_for(kind, tmp_path):
    theirs, ours = pair(tmp_path, kind, SEQUENCE, "text-classification", context=16)
    long = " ".join(TEXTS)
    for item in (
        long,
        {"text": long, "text_pair": "Ada"},
        {"text": long, "text_pair": long},
        {"text": "A", "text_pair": long},
    ):
        same(ours(item, truncation=True), theirs(item, truncation=True))
        with pytest.raises(UsageError, match="longer than this model's context of 16"):
            ours(item)


@pytest.mark.parametrize("settings", [{}, {"multi_label": True}, {"hypothesis_template": "It is about {}"}])
@pytest.mark.parametrize("kind", ["bert", "roberta", "modernbert"])
def test_labels_that_a_caller_names(kind, settings, tmp_path):
    names = named(["contradiction", "neutral", "entailment"])
    theirs, ours = pair(tmp_path, kind, SEQUENCE, "zero-shot-classification", context=96, settings=settings, **names)
    labels = ["sport", "art", "London", "the dog"]
    for given in (labels, "sport, art", ["art"]):
        same(ours(TEXTS[0], candidate_labels=given), theirs(TEXTS[0], candidate_labels=given))
    same(ours(TEXTS, labels, batch_size=5), theirs(TEXTS, labels))
    long = " ".join(TEXTS * 3)
    same(ours(long, labels, truncation=True), theirs(long, labels))
    with pytest.raises(UsageError, match="longer than"):
        ours(long, labels)


@pytest.mark.parametrize("kind", [*ENCODERS, "gpt2", "llama"])
def test_hidden_states(kind, tmp_path):
    theirs, ours = pair(tmp_path, kind, BARE, "feature-extraction")
    for text in TEXTS:
        same(ours(text), theirs(text))
    for answer, expected in zip(ours(TEXTS, batch_size=3), theirs(TEXTS), strict=True):
        same(answer, expected)
    assert list(ours(TEXTS[0], return_tensors=True).shape) == list(theirs(TEXTS[0], return_tensors=True).shape)


def test_what_is_refused(tmp_path):
    _, ours = pair(tmp_path / "a", "bert", SEQUENCE, "text-classification", **named(LABELS))
    for wrong, match in ((3, "was given a int"), ({"text": 1}, "no text"), ({"text": "a", "other": "b"}, "other")):
        with pytest.raises(UsageError, match=match):
            ours(wrong)
    with pytest.raises(UsageError, match=r"input 2: .*int"):
        ours(["a", 3])
    for settings in ({"topk": 1}, {"top_k": 0}, {"function_to_apply": "tanh"}, {"head": "other"}, {"batch_size": 0}):
        with pytest.raises(UsageError):
            ours("a", **settings)
    with pytest.raises(DataError, match="lone surrogate"):
        ours("\udcff")
    _, zero = pair(tmp_path / "b", "bert", SEQUENCE, "zero-shot-classification", **named(["entailment", "no"]))
    for settings in ({}, {"candidate_labels": " , "}, {"candidate_labels": "a", "hypothesis_template": "none"}):
        with pytest.raises(UsageError):
            zero("text", **settings)
    assert ours([]) == []


def test_an_empty_text_without_special_tokens_is_refused(tmp_path):
    _, ours = pair(tmp_path, "gpt2", BARE, "feature-extraction")
    with pytest.raises(DataError, match="empty"):
        ours("")
    (tmp_path / "tokenizer.json").unlink()
    import orrery

    with pytest.raises(ModelFileError, match=r"tokenizer\.json"):
        orrery.pipeline("feature-extraction", tmp_path, device="cpu")("a")
