"""Word vectors of a small language, in which words of one kind stand in the same places."""

import numpy as np

from orrery.models.word2vec.draws import skip_gram
from orrery.models.word2vec.objectives import NegativeSampling
from orrery.models.word2vec.parts import Settings
from orrery.models.word2vec.train import train
from orrery.models.word2vec.vectors import Vectors
from orrery.models.word2vec.vocabulary import Vocabulary, WordCorpus

KINDS = {
    "animal": ("dog", "bear", "cow", "horse"),
    "food": ("bread", "rice", "corn", "soup"),
    "place": ("house", "field", "barn", "city"),
}
SETTINGS = Settings(width=16, window=3, epochs=4, rate=0.05, sample=0.0, chunk=500, seed=7)


def small_vectors(sentences: int = 1500) -> Vectors:
    """Return skip-gram vectors of sentences that are drawn by one rule."""
    rng = np.random.default_rng(0)
    animals, foods, places = KINDS.values()
    text = [
        f"the {rng.choice(animals)} eats {rng.choice(foods)} and sleeps in the {rng.choice(places)}".split()
        for _ in range(sentences)
    ]
    vocabulary = Vocabulary.count(text, 1)
    trained = train(WordCorpus.of(text, vocabulary), vocabulary, skip_gram, NegativeSampling(vocabulary), SETTINGS)
    return Vectors(vocabulary.words, trained.vectors)
