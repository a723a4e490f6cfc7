"""The training of Unigram vocabularies, each step against one that looks at every word and every cut."""

import inspect
import itertools
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.text.algorithms.unigram import training
from orrery.text.algorithms.unigram.paths import Edges, Paths
from orrery.text.algorithms.unigram.seeds import propose
from orrery.text.algorithms.unigram.substrings import LONGEST, Words, substrings
from orrery.text.algorithms.unigram.training import State, bounded, digamma, learn, logarithms, losses, spelled
from orrery.text.train import train_tokenizer

COUNTS = st.dictionaries(st.text("abc", min_size=1, max_size=7), st.integers(1, 9), min_size=1, max_size=8)
MORE = st.sets(st.text("abc", min_size=2, max_size=4), max_size=12)


def brute_substrings(counts):
    """Return how often each substring is whose continuations differ; an end differs from every other."""
    totals, following, ends = Counter(), {}, set()
    for word, count in counts.items():
        for first, last in itertools.combinations(range(len(word) + 1), 2):
            part = word[first:last]
            totals[part] += count
            following.setdefault(part, set()).add(word[last : last + 1])
            ends |= {part} if last == len(word) else set()
    return {
        part: count
        for part, count in totals.items()
        if 1 < len(part) <= LONGEST and count > 1 and (part in ends or len(following[part]) > 1 or len(part) == LONGEST)
    }


def segmentations(word, pieces):
    for cuts in itertools.product((0, 1), repeat=len(word) - 1):
        ends = [place + 1 for place, cut in enumerate(cuts) if cut]
        parts = [word[a:b] for a, b in itertools.pairwise([0, *ends, len(word)])]
        if all(part in pieces for part in parts):
            yield parts


def paths_of(words, pieces):
    """Return the paths of words in descending length, with an edge wherever one of the pieces stands."""
    groups = []
    for length in range(1, max(map(len, pieces)) + 1):
        spans = [
            (row, place, pieces.index(word[place : place + length]))
            for row, word in enumerate(words)
            for place in range(len(word) - length + 1)
            if word[place : place + length] in pieces
        ]
        rows = np.array(spans, np.int32).reshape(-1, 3)
        groups.append(Edges(rows[:, 0], rows[:, 1].astype(np.int16), length, rows[:, 2]))
    return Paths.of(np.array(list(map(len, words))), groups)


@given(COUNTS)
def test_substrings_are_the_brute_force(counts):
    words = Words.of(counts)
    numbered = {}
    for group in substrings(words):
        starts = [0, *group.ends]
        for number, count in enumerate(group.counts):
            places = group.places[starts[number] : starts[number + 1]]
            (part,) = {words.spell(int(place), group.length) for place in places}
            assert (
                len(places)
                == len({*places.tolist()})
                == sum(word.startswith(part, at) for word in counts for at in range(len(word)))
            )
            numbered[part] = count
    assert numbered == brute_substrings(counts)


@pytest.mark.parametrize("length", [15, 16, 17, 31, 33, 64])
def test_substrings_of_long_words_are_the_brute_force(length):
    counts = {("ab" * length)[:length]: 3, "ab" * 4 + "c" * length: 2, "c" * length: 1, "\0c\U0001f98a" * 5: 2}
    parts = [
        Words.of(counts).spell(int(group.places[end - 1]), group.length)
        for group in substrings(Words.of(counts))
        for end in group.ends
    ]
    assert len(parts) == len({*parts})
    assert {*parts} == {*brute_substrings(counts)}


@given(COUNTS, MORE)
def test_expectations_and_best_ways_are_the_brute_force(counts, more):
    pieces = sorted({*"abc"} | more)
    words = sorted(counts, key=lambda word: (-len(word), word))
    paths = paths_of(words, pieces)
    scores = np.log(np.arange(1, len(pieces) + 1) / 99)
    of = dict(zip(pieces, scores, strict=True))
    times = np.array([counts[word] for word in words], float)
    expected, likelihood = paths.expected(scores, times)
    expectations, total, best = Counter(), 0.0, []
    for word in words:
        ways = [(math.exp(sum(of[part] for part in parts)), parts) for parts in segmentations(word, of)]
        every = sum(weight for weight, _ in ways)
        total += counts[word] * math.log(every)
        best.append(math.log(max(weight for weight, _ in ways)))
        for weight, parts in ways:
            for part in parts:
                expectations[part] += counts[word] * weight / every
    assert expected == pytest.approx([expectations[piece] for piece in pieces], abs=1e-9)
    assert likelihood == pytest.approx(total)
    edges, most = paths.best(scores, times)
    assert most == pytest.approx(best)
    used = paths.used(edges, len(pieces))
    assert used @ scores == pytest.approx(times @ most)
    assert np.bincount(paths.owners(), edges > 0) @ times == pytest.approx(used.sum())


@given(COUNTS)
def test_the_loss_of_a_piece_is_what_the_best_ways_lose(counts):
    words = Words.of(counts)
    state = State.of(words)
    pieces, scores = spelled(words, state), logarithms(state.weights)
    of = dict(zip(pieces, scores, strict=True))
    assert {*pieces} == {*"".join(counts)} | {*brute_substrings(counts)}
    edges, _ = state.words.best(scores, state.counts)
    used = dict(zip(pieces, state.words.used(edges, len(pieces)), strict=True))
    for piece, loss in zip(pieces, losses(state, scores), strict=True):
        if not used[piece]:
            assert loss == -math.inf
        elif len(piece) > 1:
            ways = [parts for parts in segmentations(piece, of) if len(parts) > 1]
            scored = [(sum(of[part] for part in parts), parts) for parts in ways]
            equal = [parts for score, parts in scored if score > max(scored)[0] - 1e-9]
            total = sum(used.values())
            lost = [
                used[piece]
                * (
                    math.log(used[piece] / total)
                    - sum(math.log(used[part] + used[piece]) for part in parts)
                    + len(parts) * math.log(total + used[piece] * (len(parts) - 1))
                )
                for parts in equal
            ]
            assert any(loss == pytest.approx(one) for one in lost)


@given(COUNTS, st.integers(3, 20))
def test_pieces_fit_hold_every_character_and_are_probabilities(counts, room):
    scores = learn(counts, room)
    assert {*"".join(counts)} <= {*scores} <= {*"".join(counts)} | {*brute_substrings(counts)}
    assert len(scores) <= max(room, len({*"".join(counts)}))
    assert sum(map(math.exp, scores.values())) == pytest.approx(1, abs=1e-6)


def test_scores_of_long_words_of_rare_characters_are_finite():
    words = {"".join(map(chr, range(0x4E00, 0x4E00 + 64))): 1, "ab" * 32: 1_000_000_000}
    scores = learn(words, 100)
    assert all(map(math.isfinite, scores.values()))
    assert max(scores, key=scores.get) in "ab" * 32


def test_a_word_is_a_piece_though_punctuation_always_follows_it():
    """What the cut takes away no longer makes a word branch: the engine's trainer proposed `` Elizabet`` at most."""
    names = ["Elizabeth", "Margaret", "Jonathan"]
    texts = [f"said {name}, and {name}. But {name}; {name}!\n" for name in names] * 9
    tokenizer = train_tokenizer("unigram", texts, 60)
    for name in names:
        assert tokenizer.id(" " + name) is not None
        assert len(tokenizer.encode(f"said {name}.")) <= 5


def test_the_end_token_is_no_piece():
    tokenizer = train_tokenizer("unigram", ["END END ENDED"] * 9, 40, "END")
    assert tokenizer.special("end") not in tokenizer.encode("END ENDED")


def test_of_too_many_words_the_most_frequent_stay_and_every_character(monkeypatch):
    counts = {f"{number:05d}": 1 + number % 7 for number in range(3_000)} | {"\u6771": 1}
    kept = bounded(counts, 5_000)
    assert 4_900 < sum(map(len, kept)) <= 5_011
    assert min(kept[word] for word in kept if len(word) > 1) >= 5
    assert {*"".join(kept)} == {*"".join(counts)}
    assert bounded(counts, 100_000) == counts
    monkeypatch.setattr(training, "MOST_CHARACTERS", 5_000)
    assert len(learn(counts, 200)) == 200


def test_digamma_is_the_derivative_of_the_logarithm_of_gamma():
    values = np.array([0.5, 1.0, 3.3, 6.9, 7.1, 250.0])
    step = 1e-4
    slopes = [(math.lgamma(value + step) - math.lgamma(value - step)) / (2 * step) for value in values]
    assert digamma(values) == pytest.approx(slopes, abs=1e-6)
    assert digamma(np.array([1.0])) == pytest.approx(-0.5772156649015329, abs=1e-8)


def test_as_many_seeds_are_proposed_as_the_reference_proposes():
    """``seed_sentencepiece_size`` of SentencePiece is a million."""
    assert inspect.signature(propose).parameters["most"].default == 1_000_000
