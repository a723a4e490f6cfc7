"""A small language: words of one kind stand in the same places, so that they should get similar vectors."""

import numpy as np

from orrery.models.word2vec.vocabulary import Vocabulary, WordCorpus

KINDS = {
    "animal": "cat dog horse cow sheep",
    "food": "bread rice corn soup cake",
    "place": "house field barn city yard",
}


def sentences(count=2000, seed=0):
    rng = np.random.default_rng(seed)
    animals, foods, places = (words.split() for words in KINDS.values())
    return [
        f"the {rng.choice(animals)} eats {rng.choice(foods)} and sleeps in the {rng.choice(places)}".split()
        for _ in range(count)
    ]


def corpus(count=2000, seed=0):
    text = sentences(count, seed)
    vocabulary = Vocabulary.count(text, 1)
    return WordCorpus.of(text, vocabulary), vocabulary
