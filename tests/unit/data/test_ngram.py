import math
from collections import Counter, defaultdict

import numpy as np
import pytest

from orrery.data.splits import split_tail
from orrery.errors import DataError
from orrery.evaluation.floors import compression_floor
from orrery.models.ngram import ByteNgram, TokenNgram

RNG = np.random.default_rng(0)
TRAIN, TEST = RNG.integers(0, 5, 400), RNG.integers(0, 7, 200)


def naive(order, vocabulary, train, test):
    """Witten-Bell by dictionaries, straight from the equation."""
    followers = defaultdict(Counter)
    for place, token in enumerate(train):
        for length in range(min(order - 1, place) + 1):
            followers[tuple(train[place - length : place])][token] += 1

    def probability(token, context):
        shorter = probability(token, context[1:]) if context else 1 / vocabulary
        seen = followers.get(context)
        return (seen[token] + len(seen) * shorter) / (seen.total() + len(seen)) if seen else shorter

    return [probability(token, tuple(test[max(0, place - order + 1) : place])) for place, token in enumerate(test)]


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_equals_the_naive_definition(order):
    model = TokenNgram(order, 7).fit(TRAIN)
    expected = naive(order, 7, TRAIN.tolist(), TEST.tolist())
    np.testing.assert_allclose(model.probabilities(TEST), expected, rtol=1e-12)
    assert model.nats(TEST) == pytest.approx(-np.log(expected).mean(), rel=1e-12)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_a_shortened_model_is_the_one_of_that_order(order):
    long, short = TokenNgram(4, 7).fit(TRAIN), TokenNgram(order, 7).fit(TRAIN)
    np.testing.assert_array_equal(long.shortened(order).probabilities(TEST), short.probabilities(TEST))
    assert long.shortened(order).grams == short.grams
    grams = {tuple(TRAIN[i : i + n]) for n in range(1, order + 1) for i in range(len(TRAIN) - n + 1)}
    assert short.grams == len(grams)
    assert short.bytes >= 16 * short.grams


@pytest.mark.parametrize("context", [[], [1], [1, 2], [6, 6], [*TRAIN[-3:]]])
def test_probabilities_sum_to_one(context):
    model = TokenNgram(4, 7).fit(TRAIN)
    assert sum(model.probabilities([*context, token])[-1] for token in range(7)) == pytest.approx(1, abs=1e-12)


def test_bytes_are_tokens_of_256():
    train, test = b"the cat sat on the mat" * 3, b"the rat"
    expected = TokenNgram(3, 256).fit(list(train)).nats(list(test)) / math.log(2)
    assert ByteNgram(3).fit(train).bits_per_byte(test) == pytest.approx(expected, rel=1e-12)


def test_nothing_to_count_is_refused():
    with pytest.raises(DataError, match="at least one token"):
        ByteNgram(3).fit(b"")
    with pytest.raises(DataError, match="outside the vocabulary"):
        TokenNgram(2, 3).fit([3])


@pytest.mark.parametrize(("order", "nats"), [(3, 2.049), (4, 1.774), (5, 1.669), (6, 1.698)])
def test_tiny_shakespeare_reaches_the_published_floor(data_set, order, nats):
    text = data_set("tiny-shakespeare/input.txt").read_text(encoding="utf-8")
    numbers = {character: number for number, character in enumerate(sorted(set(text)))}
    train, validation = ([numbers[character] for character in part] for part in split_tail(text))
    assert TokenNgram(order, 65).fit(train).nats(validation) == pytest.approx(nats, abs=5e-4)


def test_a_primed_compressor_has_seen_the_text():
    text = RNG.bytes(3000)
    assert compression_floor(text) > 8
    assert compression_floor(text, primed_with=text) < 0.2
    assert compression_floor(b"ab" * 500) < 1
    with pytest.raises(DataError):
        compression_floor(b"")
