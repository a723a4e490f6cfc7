"""Likelihoods of continuations against the model's own scores, one text at a time."""

import math
from pathlib import Path

import pytest
import torch

from orrery.errors import DataError, UsageError
from orrery.evaluation.perplexity import evaluate_perplexity
from orrery.exchange.reading.read import Stored
from orrery.language_model import likelihoods
from orrery.language_model.likelihoods import Continuation, windows
from orrery.language_model.model import LanguageModel
from tiny_models import TOKENIZER, tiny

CONTEXT = 48
PAIRS = [
    ("the cat", " sat on the mat"), ("the cat", " sat"), ("the cat ", "sat"), ("", "the dog sat"), ("the", " log"),
    ("the dog sat on the log; the cat", " sat on the mat, the dog"), ("", "\u00e4\u00f6\u00fc"), ("the cat", " sat on"),
]  # fmt: skip


def stored(family: str = "llama") -> Stored:
    return Stored(Path("tiny"), tiny(family, torch.float64), tokenizer=TOKENIZER)


def expected(lm: LanguageModel, context: str, text: str) -> tuple[float, int, bool]:
    """Return what one row alone says, straight from the logits."""
    whole = TOKENIZER.encode(context + text)
    known = TOKENIZER.encode(context.rstrip())
    row = whole if known else [TOKENIZER.special("end"), *whole]
    first = len(known) or 1
    logits = lm.logits([row])[0].log_softmax(-1)
    nats = [float(logits[place - 1, row[place]]) for place in range(first, len(row))]
    greedy = all(int(logits[place - 1].argmax()) == row[place] for place in range(first, len(row)))
    return math.fsum(nats), len(nats), greedy


@pytest.mark.parametrize("family", ["llama", "gpt2"])
@pytest.mark.parametrize("batch_size", [1, 3, 64])
def test_a_batch_equals_each_alone(family: str, batch_size: int) -> None:
    lm = LanguageModel(stored(family))
    told: list[int] = []
    scored = lm.likelihoods(PAIRS, batch_size=batch_size, done=told.append)
    for pair, one in zip(PAIRS, scored, strict=True):
        nats, tokens, greedy = expected(lm, *pair)
        assert one.nats == pytest.approx(nats, abs=1e-9)
        assert (one.tokens, one.greedy, one.cut) == (tokens, greedy, 0)
    assert told[-1] == len(PAIRS)


@pytest.mark.parametrize("family", ["llama", "gpt2"])
@pytest.mark.parametrize("rows", [1, 2, 3, 5, 7, 30, 47, 48, 49, 1000])
def test_no_more_logits_are_held_at_once_than_a_piece_has(
    family: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    lm = LanguageModel(stored(family))
    text = "the cat sat on the mat, the dog sat on the log; " * 5
    whole, pairs, measured = lm.text_likelihoods([text]), lm.likelihoods(PAIRS), evaluate_perplexity(lm, [text, text])
    vocabulary, seen = lm.model.spec.vocabulary, list[int]()
    monkeypatch.setattr(likelihoods, "PIECE", rows * vocabulary + vocabulary // 2)
    handle = lm.model.head.register_forward_hook(lambda head, given, logits: seen.append(logits.numel()))
    assert lm.text_likelihoods([text]) == pytest.approx(whole, abs=1e-9)
    assert [one.nats for one in lm.likelihoods(PAIRS)] == pytest.approx([one.nats for one in pairs], abs=1e-9)
    assert [one.greedy for one in lm.likelihoods(PAIRS)] == [one.greedy for one in pairs]
    assert evaluate_perplexity(lm, [text, text]) == pytest.approx(measured, abs=1e-9)
    handle.remove()
    assert max(seen) <= rows * vocabulary
    assert max(seen) == min(rows, CONTEXT) * vocabulary


def test_a_whole_text_equals_its_score() -> None:
    lm = LanguageModel(stored())
    text = "the cat sat on the mat, the dog sat"
    assert lm.text_likelihoods([text])[0] == pytest.approx(lm.score(text).total, abs=1e-9)
    assert lm.likelihoods([("", text)])[0].nats == pytest.approx(lm.score(text).total, abs=1e-9)


def test_blanks_before_a_choice_belong_to_it() -> None:
    own = stored()
    assert likelihoods.continuation(own, "the cat ", "sat") == likelihoods.continuation(own, "the cat", " sat")


def test_what_is_greedy_is_said_so() -> None:
    lm = LanguageModel(stored())
    written = lm.generations(["the cat"], max_new_tokens=3, temperature=0)[0]
    row = tuple(TOKENIZER.encode("the cat"))
    (likelihood,) = likelihoods.likelihoods(stored(), [Continuation(row, tuple(written.ids))])
    assert likelihood.greedy
    other = (written.ids[0] + 1) % TOKENIZER.size
    (likelihood,) = likelihoods.likelihoods(stored(), [Continuation(row, (other,))])
    assert not likelihood.greedy


def test_a_context_too_long_loses_its_beginning() -> None:
    lm = LanguageModel(stored())
    row = tuple(number % 250 for number in range(100))
    (likelihood,) = likelihoods.likelihoods(lm.stored, [Continuation(row, (7, 8))])
    (short,) = likelihoods.likelihoods(lm.stored, [Continuation(row[-(CONTEXT - 1) :], (7, 8))])
    assert likelihood.nats == short.nats
    assert (likelihood.cut, short.cut) == (100 + 1 - CONTEXT, 0)


def test_windows_predict_each_token_once_and_fill_up_the_last() -> None:
    ids = tuple(range(1, 11))
    parts = list(windows(ids, [0], 4))
    assert [one.ids for one in parts] == [(1, 2, 3, 4), (5, 6, 7, 8), (9, 10)]
    # lm_eval's own example: the last one reads 5 6 7 8 before it predicts 9 and 10
    assert [one.before for one in parts] == [(0,), (4,), (6, 7, 8)]
    assert all(len(one.before) + len(one.ids) - 1 <= 4 for one in parts)


def test_what_cannot_be_scored_is_refused() -> None:
    lm = LanguageModel(stored())
    with pytest.raises(DataError, match="adds no token"):
        lm.likelihoods([("the cat", "")])
    with pytest.raises(DataError, match="a continuation of"):
        lm.likelihoods([("", "the cat sat " * 60)])
    with pytest.raises(UsageError, match="only a decoder"):
        LanguageModel(stored("bert")).likelihoods([("the", " cat")])
    assert lm.likelihoods([]) == []
