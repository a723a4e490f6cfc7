"""Training: the same bytes for any number of workers, a loss that means something, errors that say what to do."""

import itertools
import json
import lzma
import math
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from orrery.errors import DataError, UsageError
from orrery.models.word2vec import train as module
from orrery.models.word2vec.draws import cbow, skip_gram, stream_key, subsample
from orrery.models.word2vec.objectives import FullSoftmax, HierarchicalSoftmax, NegativeSampling
from orrery.models.word2vec.parts import Settings
from orrery.models.word2vec.plain import descend_by_definition
from orrery.models.word2vec.runners import hogwild, in_order
from orrery.models.word2vec.sentences import CutText
from orrery.models.word2vec.train import train
from orrery.models.word2vec.vocabulary import StoredCorpus, Vocabulary, WordCorpus
from word2vec_toy import KINDS, corpus, sentences

SMALL = Settings(width=20, window=3, epochs=2, rate=0.05, sample=0.0, chunk=500, seed=7)
LOGISTIC = list(itertools.product((skip_gram, cbow), (NegativeSampling, HierarchicalSoftmax)))


@pytest.mark.parametrize(("architecture", "objective"), LOGISTIC)
def test_the_same_bytes_for_one_two_and_four_workers(architecture, objective):
    text, vocabulary = corpus()
    runs = [
        train(text, vocabulary, architecture, objective(vocabulary), replace(SMALL, workers=workers))
        for workers in (1, 2, 4)
    ]
    assert len({run.vectors.tobytes() for run in runs}) == 1
    assert len({run.weights.tobytes() for run in runs}) == 1
    assert len({run.losses for run in runs}) == 1
    other = train(text, vocabulary, architecture, objective(vocabulary), replace(SMALL, seed=8))
    assert other.vectors.tobytes() != runs[0].vectors.tobytes()


@pytest.mark.parametrize(("architecture", "objective"), LOGISTIC)
def test_hogwild_with_one_worker_is_the_serial_algorithm(architecture, objective):
    text, vocabulary = corpus(500)
    one, other = (
        train(text, vocabulary, architecture, objective(vocabulary), SMALL, run) for run in (in_order, hogwild)
    )
    assert one.vectors.tobytes() == other.vectors.tobytes()
    assert one.losses == other.losses


@pytest.mark.parametrize("run", [in_order, hogwild])
@pytest.mark.parametrize(("architecture", "objective"), LOGISTIC)
def test_words_of_one_kind_become_neighbours_and_the_loss_falls(architecture, objective, run):
    text, vocabulary = corpus(3000)
    # The gradient of a mean is shared among the words it is of: CBOW takes larger steps (Irsoy et al. 2021).
    settings = replace(SMALL, epochs=6, workers=2, rate=0.05 if architecture is skip_gram else 0.2)
    trained = train(text, vocabulary, architecture, objective(vocabulary), settings, run)
    assert list(trained.losses) == sorted(trained.losses, reverse=True)
    assert trained.measured[-1] < trained.measured[0]
    vectors = trained.keep()
    kinds = [words.split() for words in KINDS.values()]
    inside = [vectors.similarity(a, b) for words in kinds for a, b in itertools.combinations(words, 2)]
    outside = [vectors.similarity(a, b) for one, two in itertools.combinations(kinds, 2) for a in one for b in two]
    assert np.mean(inside) > np.mean(outside) + 0.15


@pytest.mark.parametrize("architecture", [skip_gram, cbow])
@pytest.mark.parametrize("objective", [FullSoftmax, NegativeSampling, HierarchicalSoftmax])
def test_the_plain_definition_trains_where_nothing_is_compiled(monkeypatch, architecture, objective):
    text, vocabulary = corpus(12)
    settings = replace(SMALL, epochs=1, chunk=100)
    fast = train(text, vocabulary, architecture, objective(vocabulary), settings)
    monkeypatch.setattr(module, "HAVE_NUMBA", False)
    plain = train(text, vocabulary, architecture, objective(vocabulary), settings)
    # Equal up to float32 and to the words drawn twice for one example.
    assert plain.losses == pytest.approx(fast.losses, rel=0.01)
    assert np.abs(plain.vectors - fast.vectors).max() < 0.02
    assert np.isfinite(plain.weights).all()


def test_without_numba_the_draws_are_the_same_and_it_says_that_it_is_slow():
    program = """
import sys; sys.modules["numba"] = None
from dataclasses import replace
from word2vec_toy import corpus
from orrery.models.word2vec.draws import skip_gram
from orrery.models.word2vec.objectives import HierarchicalSoftmax
from orrery.models.word2vec.parts import Settings
from orrery.models.word2vec.train import train
text, vocabulary = corpus(4)
settings = Settings(width=20, window=3, epochs=1, sample=0.01, seed=7)
print(train(text, vocabulary, skip_gram, HierarchicalSoftmax(vocabulary), settings).losses[0])
"""
    tests = str(Path(__file__).parents[3])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([tests, *sys.path])}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    text, vocabulary = corpus(4)
    settings = Settings(width=20, window=3, epochs=1, sample=0.01, seed=7)
    here = train(text, vocabulary, skip_gram, HierarchicalSoftmax(vocabulary), settings).losses[0]
    assert float(done.stdout) == pytest.approx(here, rel=1e-5)
    assert "numba is missing" in done.stderr


def test_the_full_softmax_learns():
    text, vocabulary = corpus(20)
    trained = train(text, vocabulary, skip_gram, FullSoftmax(vocabulary), replace(SMALL, epochs=3, rate=0.2))
    assert list(trained.losses) == sorted(trained.losses, reverse=True)
    assert trained.losses[0] < np.log(len(vocabulary.words))


def test_the_first_loss_is_that_of_a_model_that_knows_nothing():
    """With output vectors of zero each logistic regression costs log 2, the softmax log V."""
    text, vocabulary = corpus(12)
    still = replace(SMALL, epochs=1, rate=0.0, final_rate=0.0)
    losses = {
        kind: train(text, vocabulary, skip_gram, kind(vocabulary), still).losses[0]
        for kind in (FullSoftmax, HierarchicalSoftmax, NegativeSampling)
    }
    assert losses[FullSoftmax] == pytest.approx(np.log(len(vocabulary.words)), rel=1e-6)
    assert losses[NegativeSampling] < 6 * np.log(2)  # draws of the word itself are left out
    assert losses[NegativeSampling] > 5 * np.log(2)


@pytest.mark.parametrize("run", [in_order, hogwild])
def test_a_text_on_disk_leaves_the_same_bytes(run):
    text, vocabulary = corpus(500)
    kept = train(text, vocabulary, skip_gram, NegativeSampling(vocabulary), SMALL, run)
    with tempfile.TemporaryFile() as file:
        stored = StoredCorpus(file, sentences(500), vocabulary)
        again = train(stored, vocabulary, skip_gram, NegativeSampling(vocabulary), SMALL, run)
    assert kept.vectors.tobytes() == again.vectors.tobytes()
    assert kept.losses == again.losses


@pytest.mark.parametrize("objective", [NegativeSampling, HierarchicalSoftmax])
def test_the_loss_after_an_epoch_is_that_of_the_tables_on_fresh_draws(objective):
    """Recomputed by the plain definition from the tables that the training left."""
    text, vocabulary = corpus(300)
    settings, made = replace(SMALL, epochs=1, rate=0.2), objective(vocabulary)
    trained = train(text, vocabulary, skip_gram, made, settings)
    keep, window, noise = (stream_key(settings.seed, settings.epochs, 0, purpose) for purpose in range(3))
    first = next(text.chunks(settings.chunk))
    kept, bounds = subsample(first.tokens, first.starts, vocabulary.keep_rates(0.0), keep)
    contexts = skip_gram(kept, bounds, settings.window, window)
    targets = made.targets(contexts.words, noise)
    tables = trained.vectors.astype(np.float64), trained.weights.astype(np.float64)
    loss = descend_by_definition(made, *tables, contexts, targets, 0.0)
    assert trained.measured == (pytest.approx(loss / len(contexts.words), rel=1e-4),)


@pytest.mark.slow
def test_the_loss_of_hierarchical_softmax_falls_on_a_novel(data_set):
    """W5: after every epoch it is lower, though the loss of the steps rises when the rate has fallen."""
    folder = data_set("eltec-novels")
    with lzma.open(folder / "train.jsonl.xz", "rt", encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for line in itertools.islice(lines, 3)]
    cut = list(CutText(lambda: texts))
    vocabulary = Vocabulary.count(cut)
    objective = HierarchicalSoftmax(vocabulary)
    trained = train(WordCorpus.of(cut, vocabulary), vocabulary, skip_gram, objective, Settings(epochs=5))
    assert list(trained.measured) == sorted(trained.measured, reverse=True)
    assert trained.measured[-1] < trained.measured[0] - 0.05


def test_the_report_ends_at_the_last_word_and_the_rate_falls():
    text, vocabulary = corpus(200)
    seen = []
    train(text, vocabulary, skip_gram, NegativeSampling(vocabulary), SMALL, report=seen.append)
    assert seen[-1].words == seen[-1].of == 2 * len(text.tokens)
    assert [progress.epoch for progress in seen if progress.measured is not None] == [0, 1]
    assert [progress.words for progress in seen] == sorted(progress.words for progress in seen)
    assert len(seen) == 2 * (-(-len(text.tokens) // SMALL.chunk) + 1)  # after each chunk, and after each epoch
    assert all(math.isfinite(progress.loss) for progress in seen)
    rates = [chunk.rate for epoch in (0, 1) for chunk in module._chunks(text, epoch, SMALL)]
    assert rates[0] == SMALL.rate
    assert rates == sorted(rates, reverse=True)
    assert SMALL.final_rate < rates[-1] < rates[0] / 2


@pytest.mark.parametrize("lines", [[], [[]], [[], []]])
def test_an_empty_corpus_is_an_error(lines):
    with pytest.raises(DataError, match="empty"):
        Vocabulary.count(lines)


@pytest.mark.parametrize("lines", [[["one"]], [["one"] * 50], [list("abcdef")]])
def test_a_vocabulary_of_under_two_words_is_an_error(lines):
    with pytest.raises(DataError, match=r"at least two.*min_count"):
        Vocabulary.count(lines, min_count=2)


def test_a_window_larger_than_the_text_is_an_error():
    vocabulary = Vocabulary.count([["a", "b", "c"]], 1)
    text = WordCorpus.of([["a", "b", "c"]], vocabulary)
    train(text, vocabulary, cbow, NegativeSampling(vocabulary), replace(SMALL, window=2))
    with pytest.raises(DataError, match=r"window of 3 words.*larger than the text of 3"):
        train(text, vocabulary, cbow, NegativeSampling(vocabulary), SMALL)


def test_sentences_of_one_word_are_an_error():
    lines = [["a"], ["b"]] * 10
    vocabulary = Vocabulary.count(lines, 1)
    with pytest.raises(DataError, match="no two neighbouring words"):
        train(WordCorpus.of(lines, vocabulary), vocabulary, skip_gram, NegativeSampling(vocabulary), SMALL)


@pytest.mark.parametrize(
    "wrong", [{"width": 0}, {"window": 0}, {"epochs": 0}, {"workers": 0}, {"rate": -1.0}, {"sample": -1.0}]
)
def test_numbers_that_cannot_be(wrong):
    with pytest.raises(UsageError, match=next(iter(wrong))):
        Settings(**wrong)


def test_no_negatives_is_an_error():
    with pytest.raises(UsageError, match="0 negatives"):
        NegativeSampling(corpus(5)[1], 0)
