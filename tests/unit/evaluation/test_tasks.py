"""What is measured: BLEU by length against sacrebleu itself, and perplexity against the model's own scores."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
import torch

from orrery.data.records import Pair
from orrery.errors import DataError, UsageError
from orrery.evaluation.benchmarks.translation import by_length, evaluate_translation
from orrery.evaluation.perplexity import evaluate_perplexity
from orrery.exchange.reading.read import Stored
from orrery.language_model.model import LanguageModel
from tiny_models import TOKENIZER, tiny


def lm(family: str) -> LanguageModel:
    return LanguageModel(Stored(Path("tiny"), tiny(family, torch.float64), tokenizer=TOKENIZER))


def test_buckets_part_the_pairs_by_words_and_score_each() -> None:
    sources = [" ".join("w" * n) for n in (1, 2, 3, 4, 9, 2)]
    targets = ["a b c d e", "the cat sat on it", "a b c d f", "one two three four", "x y z w v", "p q r s t"]
    hypotheses = ["a b c d e", "the cat sat on a", "a b c x f", "one two three four", "x y z w", "p q r s t"]
    buckets = by_length(sources, hypotheses, targets, (2, 5))
    assert [(b.fewest, b.most, b.pairs) for b in buckets] == [(1, 2, 3), (3, 5, 2), (6, None, 1)]
    for bucket, rows in zip(buckets, ([0, 1, 5], [2, 3], [4]), strict=True):
        expected = sacrebleu.corpus_bleu([hypotheses[r] for r in rows], [[targets[r] for r in rows]])
        assert bucket.bleu.score == pytest.approx(expected.score)
    assert str(buckets[0]).startswith("1-2 words, 3 pairs: BLEU ")
    assert str(buckets[2]).startswith("6 and more words, 1 pairs")
    assert [b.pairs for b in by_length([""], ["a"], ["a"], (2, 5))] == [1]


def test_a_translation_of_nothing_is_refused_and_blank_lines_stay() -> None:
    with pytest.raises(DataError, match="0 pairs"):
        evaluate_translation(lm("rnnsearch"), [])
    with pytest.raises(UsageError, match="only an encoder-decoder translates"):
        lm("gpt2").translate(["a"])
    told: list[int] = []
    search: dict[str, Any] = {"max_new_tokens": 5, "num_beams": 2, "batch_size": 2}
    pairs = [Pair(n, text, "a b c") for n, text in enumerate(("a", " ", "bca", "cc"), 1)]
    evaluated = evaluate_translation(lm("rnnsearch"), pairs, done=told.append, **search)
    assert evaluated.hypotheses[1] == ""
    assert told == [2, 3]
    assert evaluated.sentences_per_second == pytest.approx(len(pairs) / evaluated.seconds)
    assert replace(evaluated, seconds=0.0).sentences_per_second > 1e6  # a clock that has not moved
    assert evaluated.hypotheses == lm("rnnsearch").translate(["a", " ", "bca", "cc"], **search)


def test_perplexity_is_what_the_scores_say() -> None:
    model, texts = lm("gpt2"), ["abca", "b", "ccab"]
    end = TOKENIZER.special("end")
    ids = [end] + [id for text in texts for id in (*TOKENIZER.encode(text), end)]
    assert len(ids) <= model.context
    logp = model.logits([ids])[0].log_softmax(-1)
    nats = -sum(float(logp[place, id]) for place, id in enumerate(ids[1:])) / (len(ids) - 1)
    told: list[int] = []
    measured = evaluate_perplexity(model, texts, done=told.append)
    assert measured["loss"] == pytest.approx(nats)
    assert measured["perplexity"] == pytest.approx(math.exp(nats))
    size = sum(map(len, texts))
    assert measured["bpb"] == pytest.approx(nats * (len(ids) - 1) / size / math.log(2))
    assert told == [1]
    with pytest.raises(DataError, match="empty"):
        evaluate_perplexity(model, [""])
    with pytest.raises(UsageError, match="windows of"):
        evaluate_perplexity(model, texts, length=model.context + 1)
    with pytest.raises(UsageError, match="only a decoder"):
        evaluate_perplexity(lm("rnnsearch"), texts)
