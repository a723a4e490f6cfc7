"""W7: on the corpus that every Python brings along, words that belong together are nearer than chance."""

import re

import numpy as np
import pytest

from orrery.data.python_docs import collect
from orrery.models.word2vec.draws import skip_gram
from orrery.models.word2vec.objectives import NegativeSampling
from orrery.models.word2vec.parts import Settings
from orrery.models.word2vec.train import train
from orrery.models.word2vec.vocabulary import Vocabulary, WordCorpus

# Written down before any vector was looked at.
PAIRS = """
list tuple · dict mapping · int float · string bytes · class method · read write · open close · true false
start end · first last · left right · key value · file directory · host port · client server · import module
raise exception · encode decode · input output · minimum maximum · he she · day month · hour minute · get set
""".replace("\n", " · ").split(" · ")


@pytest.mark.slow
def test_twenty_pairs_beat_random_pairs_by_fifteen_hundredths():
    lines = [re.findall(r"[a-z]+", line) for _, text in collect() for line in re.split(r"\n\s*\n", text.lower())]
    vocabulary = Vocabulary.count(lines, 5)
    settings = Settings(epochs=5, seed=1)
    vectors = train(
        WordCorpus.of(lines, vocabulary), vocabulary, skip_gram, NegativeSampling(vocabulary), settings
    ).keep()
    pairs = [pair.split() for pair in PAIRS if pair.strip()]
    known = [pair for pair in pairs if all(word in vectors for word in pair)]
    assert len(known) >= 20
    near = np.mean([vectors.similarity(*pair) for pair in known])
    rng = np.random.default_rng(0)
    # Random partners for the same words, so that how often a word occurs cannot make the difference.
    words = [word for pair in known for word in pair]
    chance = np.mean([vectors.similarity(*rng.choice(words, 2, replace=False)) for _ in range(2000)])
    assert near > chance + 0.15, (near, chance)
