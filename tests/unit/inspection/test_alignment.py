"""Alignment of words: sums over a word's tokens, of the very patterns that the model used; the walk over the places."""

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from scipy.stats import kendalltau

from orrery.data.records import Pair
from orrery.errors import DataError, UsageError
from orrery.evaluation.benchmarks import alignment
from orrery.evaluation.benchmarks.alignment import Walk, evaluate_alignment, kendall, walk
from orrery.exchange.reading.read import Stored
from orrery.families import load_family
from orrery.inspection.alignment import words_of
from orrery.language_model.model import LanguageModel
from orrery.text.train import train_tokenizer
from tiny_models import randomised

LETTERS = train_tokenizer("character", ["abc "], 16)


def lm(family: str) -> LanguageModel:
    """Return a tiny random model of letters."""
    rules = load_family(family)
    config = {**rules.TINY, "vocab_size": LETTERS.size}
    model = randomised(rules.spec(config).build(0).double().eval())
    return LanguageModel(Stored(Path("tiny"), model, tokenizer=LETTERS))


@pytest.mark.parametrize("vocabulary", [260, 270, 330])
def test_tokens_belong_to_words_and_marks_stand_apart(vocabulary: int) -> None:
    text = "Zwei Männer, müde: spielen T-Shirt-Fußball! Über 100 \u65e5\u672c don't"
    tokenizer = train_tokenizer("byte_bpe", [text] * 3, vocabulary)
    ids = tokenizer.encode(text)
    words, word_of = words_of(tokenizer, ids)
    marks = [
        "Zwei",
        "Männer",
        ",",
        "müde",
        ":",
        "spielen",
        "T-Shirt-Fußball",
        "!",
        "Über",
        "100",
        "\u65e5\u672c",
        "don't",
    ]
    assert words == marks
    assert len(word_of) == len(ids)
    assert (word_of[0], word_of[-1]) == (0, len(words) - 1)
    assert all(after - before in (0, 1) for before, after in pairwise(word_of))
    assert words_of(tokenizer, []) == ([], [])
    assert words_of(tokenizer, tokenizer.encode("  ")) == ([], [-1] * len(tokenizer.encode("  ")))


@pytest.mark.parametrize("family", ["rnnsearch", "luong", "transformer", "bart", "t5"])
def test_a_words_weight_is_the_sum_of_its_tokens(family: str) -> None:
    model = lm(family)
    aligned_words = model.align("ab ca b", "ba c")
    assert (aligned_words.source, aligned_words.target) == (["ab", "ca", "b"], ["ba", "c"])
    trace = model.trace("ab ca b", target="ba c")
    heads = torch.cat([trace[key][0].flatten(0, -3) for key in trace if key.endswith("cross.pattern")])
    # Rows 0 and 1 predict "b" and "a", row 3 predicts "c".
    pattern_LS = heads.mean(0)[:, -7:]
    rows = [pattern_LS[:2].mean(0), pattern_LS[2:4].mean(0)]
    for row, words in zip(rows, aligned_words.weight_TS, strict=True):
        sums = torch.stack([row[:2].sum(), row[2:5].sum(), row[5:].sum()])
        torch.testing.assert_close(words, sums / sums.sum())
    assert aligned_words.places == [int(row.argmax()) for row in aligned_words.weight_TS]
    assert aligned_words.figure().startswith("<svg")
    assert ">ca<" in aligned_words.figure()


def test_what_cannot_be_aligned_says_so() -> None:
    for family, why in (("rnnenc", "one vector"), ("sutskever", "looks at no source"), ("gpt2", "looks at no source")):
        with pytest.raises(UsageError, match=why):
            lm(family).align("ab c", "b")
    for pair in (("ab", ""), ("ab", " "), (" ", "ab")):
        with pytest.raises(UsageError, match="no words"):
            lm("rnnsearch").align(*pair)
    with pytest.raises(DataError, match="0 pairs"):
        evaluate_alignment(lm("rnnsearch"), [])


def test_the_walk_is_counted_step_by_step() -> None:
    walked = walk([[0, 1, 1, 3, 2], [9, 4, 5], [2], [1, 1]])
    assert (walked.steps, walked.forward, walked.stays, walked.local, walked.far) == (7, 3, 2, 1, 1)
    assert walked.agreement == pytest.approx((kendalltau(range(5), [0, 1, 1, 3, 2])[0] + -1 / 3) / 2)
    assert str(Walk(4, 1, 2, 1, 0, 0.5)).startswith(
        "from word to word (4 steps): forward 50.0%, stays 25.0%, back by up to 3 words 25.0%, further back 0.0%"
    )


def test_kendall_is_scipys() -> None:
    rng = torch.Generator().manual_seed(0)
    for _ in range(50):
        places = torch.randint(0, 6, (int(torch.randint(2, 9, (), generator=rng)),), generator=rng).tolist()
        ours = kendall(places)
        assert (ours is None) == (len(set(places)) == 1)
        if ours is not None:
            assert ours == pytest.approx(kendalltau(range(len(places)), places)[0])


def test_pairs_are_read_one_by_one_and_blank_ones_left_out(monkeypatch) -> None:
    monkeypatch.setattr(alignment, "TOLD", 2)
    model = lm("rnnsearch")
    told: list[int] = []
    pairs = [Pair(n, "ab c", target) for n, target in enumerate(["b a", " ", "c ab a", "c ab a", "c b"], 1)]
    evaluated = evaluate_alignment(model, pairs, done=told.append)
    assert (evaluated.steps, told) == (1 + 2 * 2 + 1, [2, 4])
    # As text: where every word looks at one place there is no agreement, and NaN is not itself.
    aligned = [model.align("ab c", text).places for text in ("b a", "c ab a", "c ab a", "c b")]
    assert str(evaluated) == str(walk(aligned))
