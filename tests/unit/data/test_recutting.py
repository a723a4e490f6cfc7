"""Pairs whose words are cut again in every step: the same text, other pieces, from the seed and the step alone."""

from collections import Counter
from random import Random

import pytest

from orrery.data.batches.recutting import Recutter, with_dropout
from orrery.data.sources import BatchRequest
from orrery.data.sources.pairs import PairSettings, PairSource
from orrery.errors import UsageError
from orrery.text.special import train_framed

WORDS = ["lower", "lowest", "newer", "newest", "wider", "widest", "the", "a", "of", "streets", "houses"]
TEXTS = [" ".join(Random(n).choices(WORDS, k=3 + n % 6)) for n in range(60)]


@pytest.fixture(scope="module")
def tokenizer():
    return train_framed("byte_bpe", TEXTS, 300, None)


def request_of(tokenizer, length=64, seed=5):
    return BatchRequest("pairs", length, 6, seed, tokenizer, tokenizer.special("end"))


def source(tmp_path, bpe_dropout, **changed):
    path = tmp_path / "pairs.tsv"
    path.write_text("source\ttarget\n" + "".join(f"{text}\t{text[::-1]}\n" for text in TEXTS), encoding="utf-8")
    return PairSource.read(PairSettings(pairs=str(path), bpe_dropout=bpe_dropout, **changed))


def texts(batch, tokenizer):
    sources = [
        tokenizer.decode(row[real].tolist()) for row, real in zip(batch["source"], batch["source_real"], strict=True)
    ]
    targets = [tokenizer.decode(row[row != -100].tolist()) for row in batch["targets"]]
    return list(zip(sources, targets, strict=True))


def test_the_texts_of_a_batch_stay_and_their_pieces_change(tmp_path, tokenizer):
    plain = source(tmp_path, 0.0).examples(request_of(tokenizer)).train
    cut = source(tmp_path, 0.3).examples(request_of(tokenizer)).train
    assert cut.rows_per_epoch == plain.rows_per_epoch
    longer = 0
    for step in range(30):
        one, other = plain.batch(step), cut.batch(step)
        assert texts(one, tokenizer) == texts(other, tokenizer)
        longer += int(other["source_real"].sum()) - int(one["source_real"].sum())
        again = source(tmp_path, 0.3).examples(request_of(tokenizer)).train.batch(step) if step < 3 else other
        assert all(again[name].equal(other[name]) for name in other)
    assert longer > 100
    assert not all(cut.batch(0)["source"].shape == cut.batch(10 * epoch)["source"].shape for epoch in range(1, 9))


def test_what_is_held_back_is_cut_as_ever(tmp_path, tokenizer):
    plain, cut = (source(tmp_path, rate, split={"every": 5}).examples(request_of(tokenizer)) for rate in (0.0, 0.5))
    for step in range(2):
        one, other = plain.held_back.source.batch(step), cut.held_back.source.batch(step)
        assert all(one[name].equal(other[name]) for name in one)


def test_cuts_are_as_frequent_as_those_of_bpe_dropout(tokenizer):
    sampler = with_dropout(tokenizer, 0.2, "data.bpe_dropout")
    text, rng = " ".join(WORDS), Random(1)
    drawn = [len(sampler.encode(text, rng)) for _ in range(400)]
    recut = [Recutter(sampler, [text], seed) for seed in range(5)]
    lengths = [len(recut[seed].ids(0, step)) for seed in range(5) for step in range(80)]
    assert abs(sum(drawn) - sum(lengths)) / len(lengths) < 0.6
    assert len(Counter(lengths)) > 5


def test_a_pair_that_would_not_fit_stays_as_it_is(tmp_path, tokenizer):
    longest = max(len(tokenizer.encode(text)) for text in (*TEXTS, *(text[::-1] for text in TEXTS)))
    tight = source(tmp_path, 0.9).examples(request_of(tokenizer, length=longest + 1)).train
    assert max(tight.batch(step)["source"].shape[1] for step in range(20)) <= longest + 1
    assert max(tight.batch(step)["ids"].shape[1] for step in range(20)) <= longest + 1


def test_other_tokenizers_are_refused_by_the_recipes_key(tmp_path):
    pieces = train_framed("wordpiece", TEXTS, None, "bert")
    with pytest.raises(UsageError, match=r"data\.bpe_dropout: this is a WordPiece tokenizer, not BPE"):
        source(tmp_path, 0.1).examples(request_of(pieces))
