"""The counts of a comparison: their order is chosen on the end of the training text, and they are measured once."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from orrery.evaluation.floors import joined
from orrery.models.ngram import TokenNgram
from orrery.studies.compare.learning import ORDERS, count
from orrery.studies.compare.texts import Texts
from stand_ins import stand_in

SIZE = 8


def following(length, memory):
    """Tokens each of which follows from the ``memory`` tokens before it, nine times in ten."""
    rng = np.random.default_rng(length)
    ids = list(rng.integers(0, SIZE, memory))
    while len(ids) < length:
        known = (3 * ids[-1] + sum(ids[-memory:])) % SIZE
        ids.append(int(rng.integers(0, SIZE)) if rng.random() < 0.1 else known)
    return np.array(ids, np.uint32)


def texts(memory):
    head, tail, held_back = (following(length, memory) for length in (3000, 500, 400))
    return stand_in(
        Texts,
        tokenizer=SimpleNamespace(size=SIZE),
        head_ids=lambda: [head],
        choosing_ids=lambda: [tail],
        train_ids=[np.concatenate([head, tail])],
        held_back_ids=[held_back],
        size=1000,
        perplexity=lambda bits: 2.0**bits,
    )


@pytest.mark.parametrize("memory", [1, 2])
def test_the_order_is_the_one_that_predicts_the_end_of_the_training_text_best(memory):
    said = []
    given = texts(memory)
    entry = count(given, said.append)
    head, tail = (joined(ids()) for ids in (given.head_ids, given.choosing_ids))
    nats = {order: TokenNgram(order, SIZE).fit(head).nats(tail) for order in ORDERS}
    assert min(nats, key=nats.get) == memory + 1
    assert f"counts of 1 to {memory + 1} tokens" in entry.description
    assert said == ["ngram: counting"]


def test_the_chosen_counts_are_made_of_all_the_training_text_and_measured_on_what_is_held_back():
    given = texts(2)
    entry, model = count(given, lambda line: None), TokenNgram(3, SIZE).fit(joined(given.train_ids))
    # The first token is the end of the text before, which nothing predicts.
    nats = -np.log(model.probabilities(joined(given.held_back_ids))[1:]).sum()
    assert entry.bits_per_byte == pytest.approx(nats / math.log(2) / given.size)
    assert entry.perplexity == 2.0**entry.bits_per_byte
    assert (entry.parameters, entry.bytes) == (model.grams, model.bytes)
    assert entry.tokens == 3500
    assert entry.seconds > 0
    assert (entry.steps, entry.budget, entry.seed, entry.rate) == (None, None, None, None)
