"""From characters to ids: the steps of every kind of tokenizer end in the ids that it gives."""

from itertools import pairwise

import pytest

from orrery.page.views._view import ViewSubject, shown
from orrery.page.views.text import stages_of
from orrery.text.train import train_tokenizer
from views_toy import TEXT, TOKENIZER, subject_of

KINDS = {
    kind: train_tokenizer(kind, [TEXT * 2] * 20, size)
    for kind, size in (
        ("byte_bpe", 290),
        ("char_bpe", 60),
        ("wordpiece", 60),
        ("unigram", 60),
        ("word", 40),
        ("character", 30),
    )
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["the cat sat on the log", "the zebra, the mat"])
def test_the_steps_end_in_the_ids_of_the_tokenizer(kind, text):
    tokenizer = KINDS[kind]
    facts, checks = stages_of(tokenizer, text, tokenizer.encode(text))
    assert all(check.passed for check in checks), (checks, facts)
    assert [piece["id"] for piece in facts["pieces"]] == tokenizer.encode(text)
    if kind in ("byte_bpe", "char_bpe", "wordpiece", "unigram"):
        assert len(checks) == 2
        assert all(facts["steps"][word["word"]]["rows"] for word in facts["words"])


def test_a_merge_is_told_with_its_pair_and_when_it_was_learnt():
    facts, _ = stages_of(TOKENIZER, "the", TOKENIZER.encode("the"))
    rows = facts["steps"]["the"]["rows"]
    assert rows[0]["symbols"] == ["t", "h", "e"]
    merges = [pair if isinstance(pair, str) else " ".join(pair) for pair in TOKENIZER.definition["model"]["merges"]]
    for before, after in pairwise(rows):
        assert merges[after["rank"]] == " ".join(after["pair"])
        assert len(after["symbols"]) < len(before["symbols"])
    assert [word["ids"] for word in facts["words"]] == [TOKENIZER.encode("the")]


def test_a_wrong_merge_is_seen(monkeypatch):
    from orrery.page.views import text

    right = text.merging
    monkeypatch.setattr(text, "merging", lambda definition: lambda word: right(definition)(word)[:-1])
    _, checks = stages_of(TOKENIZER, "the cat", TOKENIZER.encode("the cat"))
    assert [check.passed for check in checks] == [True, False]


def test_ids_that_the_model_did_not_read_are_seen():
    _, checks = stages_of(TOKENIZER, "the cat", TOKENIZER.encode("the dog"))
    assert not checks[0].passed


@pytest.mark.parametrize("family", ["gpt2", "t5", "rnnsearch"])
def test_every_text_of_a_pass_is_shown(family):
    subject = subject_of(family)
    payload = shown("text", subject, {})
    streams = [one["stream"] for one in payload.facts["streams"]]
    assert streams == (["tokens"] if family == "gpt2" else ["source", "tokens"])
    assert all(check.passed for check in payload.checks), payload.checks


def test_a_model_without_a_tokenizer_has_no_such_view():
    from orrery.page.views._view import find

    subject = subject_of("gpt2")
    assert find("text").fits(subject)
    assert not find("text").fits(ViewSubject(subject.lm))
