"""Word vectors beside gensim's: same text, same settings, judged by the same code on what neither has seen."""

import re

import numpy as np
import pytest
from gensim.models.word2vec import Word2Vec

from orrery.data.corpora import read_corpus
from orrery.evaluation.benchmarks.word_vectors import measure
from orrery.models.word2vec.draws import skip_gram
from orrery.models.word2vec.objectives import NegativeSampling
from orrery.models.word2vec.parts import Settings
from orrery.models.word2vec.train import train
from orrery.models.word2vec.vectors import Vectors
from orrery.models.word2vec.vocabulary import Vocabulary, WordCorpus

BYTES = 20_000_000
SEEDS = (1, 2)
BELOW = 0.01
"""By how much a mean of two seeds may lie below gensim's: three times the error of the seeds."""


def sentences(path):
    """Return the words of the first novels, a paragraph each."""
    taken, left = [], BYTES
    for document in read_corpus(path):
        for paragraph in document.text.lower().splitlines():
            if words := re.findall(r"[^\W\d_]+", paragraph):
                taken.append(words)
                left -= len(paragraph)
        if left < 0:
            break
    return taken


def scores(vectors, folder):
    measures = measure(vectors, folder)
    return measures.accuracy, measures.similarity


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_vectors_are_as_good_as_gensims(data_set):
    text = sentences(data_set("eltec-novels/train.jsonl.xz"))
    folder = data_set("word-similarity").parent
    vocabulary = Vocabulary.count(text)
    corpus = WordCorpus.of(text, vocabulary)
    ours, theirs = [], []
    for seed in SEEDS:
        settings = Settings(epochs=2, seed=seed)
        trained = train(corpus, vocabulary, skip_gram, NegativeSampling(vocabulary), settings)
        ours.append(scores(trained.keep(), folder))
        model = Word2Vec(
            text, vector_size=100, window=5, sg=1, negative=5, workers=1, epochs=2, min_count=5, sample=1e-3, seed=seed
        )
        theirs.append(scores(Vectors(tuple(model.wv.index_to_key), model.wv.vectors), folder))
    for mine, reference in zip(np.mean(ours, 0), np.mean(theirs, 0), strict=True):
        assert mine > reference - BELOW, (ours, theirs)
