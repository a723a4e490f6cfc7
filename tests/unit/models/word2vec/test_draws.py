"""The laws of what is drawn: rare words, sub-sampling, windows, negatives, Huffman paths, phrases."""

import heapq
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orrery.errors import DataError
from orrery.models.word2vec import draws
from orrery.models.word2vec.draws import cbow, reach, skip_gram, stream_key, subsample, with_negatives, with_paths
from orrery.models.word2vec.huffman import HuffmanPaths
from orrery.models.word2vec.negatives import COLUMN, NoiseTable
from orrery.models.word2vec.phrases import join_phrases, phrase_scores
from orrery.models.word2vec.vocabulary import Vocabulary, WordCorpus

KEY = stream_key(1, 2, 3)
WAMPIMUK = ["Marco", "saw", "a", "furry", "little", "wampimuk", "hiding", "in", "the", "tree"]


def chi_square(observed, expected):
    """Return the statistic's distance from its mean in standard deviations."""
    degrees = len(observed) - 1
    return (((observed - expected) ** 2 / expected).sum() - degrees) / math.sqrt(2 * degrees)


def test_min_count_drops_exactly_the_rare_words():
    vocabulary = Vocabulary.count([["a", "a", "a", "b", "b", "c"], ["b", "d", "d", "a"]], min_count=2)
    assert vocabulary.words == ("a", "b", "d")
    assert vocabulary.counts.tolist() == [4, 3, 2]
    corpus = WordCorpus.of([["a", "x", "b"], ["x"], ["d"]], vocabulary)
    assert corpus.tokens.tolist() == [0, 1, 2]
    assert corpus.starts.tolist() == [0, 2, 3]


def test_a_long_sentence_is_cut_and_chunks_are_whole_sentences():
    vocabulary = Vocabulary.count([["a", "b"]], 1)
    corpus = WordCorpus.of([["a"] * 25_000, ["b"], ["b"] * 10_000], vocabulary)
    assert corpus.starts.tolist() == [0, 10_000, 20_000, 25_000, 25_001, 35_001]
    chunks = list(corpus.chunks(12_000))
    assert [chunk.starts.tolist() for chunk in chunks] == [[0, 10_000, 20_000], [0, 5_000, 5_001, 15_001]]
    assert np.concatenate([chunk.tokens for chunk in chunks]).tolist() == corpus.tokens.tolist()


def test_subsampling_keeps_each_word_at_its_rate():
    counts = np.array([900_000, 90_000, 9_000, 1_000])
    vocabulary = Vocabulary(tuple("abcd"), counts)
    rates = vocabulary.keep_rates(1e-3)
    frequency = counts / counts.sum()
    np.testing.assert_allclose(rates, np.minimum(1, np.sqrt(1e-3 / frequency) + 1e-3 / frequency))
    tokens = np.random.default_rng(0).permutation(np.repeat(np.arange(4), counts)).astype(np.int32)
    kept, bounds = subsample(tokens, np.array([0, 500_000, len(tokens)]), rates, KEY)
    seen = np.bincount(kept, minlength=4)
    assert bounds[-1] == len(kept)
    assert np.all(np.abs(seen - counts * rates) <= 3 * np.sqrt(counts * rates * (1 - rates)) + 1e-9)
    assert np.all(vocabulary.keep_rates(0.0) == 1)


@pytest.mark.parametrize("window", [1, 2, 5, 7])
def test_window_sizes_are_uniform(window):
    sizes = np.array([reach(window, KEY, place) for place in range(20_000)])
    seen = np.bincount(sizes, minlength=window + 1)[1:]
    assert sizes.min() == 1
    assert sizes.max() == window
    assert window == 1 or chi_square(seen, np.full(window, 20_000 / window)) < 4


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5), st.integers(1, 4))
def test_pairs_are_those_within_reach_in_the_same_sentence(lengths, window):
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    kept = np.arange(bounds[-1], dtype=np.int32)
    sentence = np.repeat(np.arange(len(lengths)), lengths)
    size = [reach(window, KEY, k) for k in range(len(kept))]
    near = {
        centre: [k for k in range(len(kept)) if 0 < abs(k - centre) <= size[centre] and sentence[k] == sentence[centre]]
        for centre in range(len(kept))
    }
    pairs = skip_gram(kept, bounds, window, KEY)
    assert list(zip(pairs.inputs, pairs.words, strict=True)) == [(k, c) for c in near for k in near[c]]
    assert pairs.ends.tolist() == list(range(1, len(pairs.inputs) + 1))
    bags = cbow(kept, bounds, window, KEY)
    read = np.split(bags.inputs, bags.ends)[:-1] if len(bags.ends) else []
    assert [(w, r.tolist()) for w, r in zip(bags.words, read, strict=True)] == [(c, near[c]) for c in near if near[c]]


def test_negatives_follow_the_counts_to_the_power_of_three_quarters():
    counts = np.sort(np.random.default_rng(1).integers(1, 10_000, 300))[::-1].copy()
    noise = NoiseTable(counts)
    expected = counts**0.75 / (counts**0.75).sum()
    np.testing.assert_allclose(noise.probabilities, expected)
    # The table itself, column by column: exact to 2^-32 of a column.
    share = noise.limits / COLUMN
    exact = (share + np.bincount(noise.others, 1 - share, 300)) / 300
    np.testing.assert_allclose(exact, expected, atol=1e-9)
    examples = 400_000
    targets = with_negatives(np.full(examples, 5, np.int32), 2, noise.limits, noise.others, KEY)
    drawn = targets.rows[~targets.labels]
    assert 5 not in drawn
    without = np.delete(expected, 5)
    seen = np.delete(np.bincount(drawn, minlength=300), 5)
    assert chi_square(seen, without / without.sum() * len(drawn)) < 4
    # As many draws hit the word itself, and are left out, as its probability says.
    missing, mean = 2 * examples - len(drawn), 2 * examples * expected[5]
    assert abs(missing - mean) < 4 * math.sqrt(mean)


def test_each_example_has_its_word_first_and_then_its_negatives():
    noise = NoiseTable(np.array([5, 4, 3, 2, 1]))
    words = np.arange(5, dtype=np.int32).repeat(20)
    targets = with_negatives(words, 4, noise.limits, noise.others, KEY)
    for word, rows, labels in zip(
        words, np.split(targets.rows, targets.ends), np.split(targets.labels, targets.ends), strict=False
    ):
        assert rows[0] == word
        assert word not in rows[1:]
        assert labels.tolist() == [True] + [False] * (len(rows) - 1)


@given(st.lists(st.integers(1, 1000), min_size=2, max_size=60))
def test_the_tree_is_a_huffman_tree(counts):
    counts = np.sort(np.array(counts))[::-1]
    paths = HuffmanPaths(counts)
    assert sum(2.0 ** -int(length) for length in paths.lengths) == 1
    heap = [int(count) for count in counts]
    heapq.heapify(heap)
    cost = 0
    while len(heap) > 1:
        both = heapq.heappop(heap) + heapq.heappop(heap)
        cost += both
        heapq.heappush(heap, both)
    assert int((paths.lengths * counts).sum()) == cost
    codes = set()
    for begin, end in zip(paths.ends - paths.lengths, paths.ends, strict=True):
        assert paths.nodes[begin] == len(counts) - 2  # every path begins at the root
        codes.add(tuple(zip(paths.nodes[begin:end].tolist(), paths.turns[begin:end].tolist(), strict=True)))
    assert len(codes) == len(counts)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_no_binary_tree_is_shorter(size):
    """Brute force over all code lengths with Kraft's equality."""
    counts = np.array([8, 5, 3, 2, 1][:size])
    best = min(
        sum(length * count for length, count in zip(lengths, counts, strict=True))
        for lengths in itertools.product(range(1, size), repeat=size)
        if sum(2.0**-length for length in lengths) == 1
    )
    assert int((HuffmanPaths(counts).lengths * counts).sum()) == best


def test_paths_are_copied_whole():
    paths = HuffmanPaths(np.array([9, 7, 5, 3, 2, 2]))
    words = np.array([5, 0, 0, 3], np.int32)
    targets = with_paths(words, paths.nodes, paths.turns, paths.ends)
    for word, rows, labels in zip(
        words, np.split(targets.rows, targets.ends), np.split(targets.labels, targets.ends), strict=False
    ):
        begin, end = paths.ends[word] - paths.lengths[word], paths.ends[word]
        assert rows.tolist() == paths.nodes[begin:end].tolist()
        assert labels.tolist() == paths.turns[begin:end].tolist()


def test_plain_python_draws_the_same_bytes():
    noise = NoiseTable(np.array([5, 4, 3, 2, 1]))
    tokens, starts = np.random.default_rng(0).integers(0, 5, 60).astype(np.int32), np.array([0, 7, 8, 60])
    rates = np.linspace(0.3, 1, 5)

    def draw(plain):
        kept, bounds = plain(subsample)(tokens, starts, rates, KEY)
        words = plain(skip_gram)(kept, bounds, 3, KEY).words
        return (
            kept,
            bounds,
            *plain(cbow)(kept, bounds, 3, KEY),
            words,
            *plain(with_negatives)(words, 3, noise.limits, noise.others, KEY),
        )

    with np.errstate(over="ignore"):
        slow = draw(lambda function: getattr(function, "py_func", function))
    for one, other in zip(draw(lambda function: function), slow, strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()


def test_random_bits_are_splitmix64():
    """The published first outputs of splitmix64 with seed 1234567."""
    first = [int(draws.random_bits(np.uint64(1234567), k)) for k in range(3)]
    assert first == [6457827717110365317, 3203168211198807973, 9817491932198370423]


def test_the_slide_s_pairs_and_negatives():
    """G15: wampimuk with a window of 2 sees furry, little, hiding, in; no negative is an observed pair."""
    rest = ["Australia", "cyber", "1985", "the", "moon", "river", "stone"]
    vocabulary = Vocabulary.count([WAMPIMUK, rest], min_count=1)
    ids, corpus = vocabulary.ids(), WordCorpus.of([WAMPIMUK], vocabulary)
    centre = WAMPIMUK.index("wampimuk")
    key = next(np.uint64(k) for k in range(100) if reach(2, np.uint64(k), centre) == 2)
    pairs = skip_gram(corpus.tokens, corpus.starts, 2, key)
    positive = [vocabulary.words[w] for w, c in zip(pairs.inputs, pairs.words, strict=True) if c == ids["wampimuk"]]
    assert positive == ["furry", "little", "hiding", "in"]
    avoid = {ids[word] for word in [*positive, "wampimuk"]}
    for seed in range(50):
        drawn = NoiseTable(vocabulary.counts).draw(4, np.random.default_rng(seed), avoid)
        assert len(drawn) == 4
        assert not avoid & set(drawn)
    with pytest.raises(DataError, match="no word is left"):
        NoiseTable(vocabulary.counts).draw(4, np.random.default_rng(0), range(len(ids)))


def test_drawing_with_the_table_follows_it_too():
    noise = NoiseTable(np.array([50, 20, 5, 1]))
    seen = np.bincount(noise.draw(20_000, np.random.default_rng(0)), minlength=4)
    assert chi_square(seen, noise.probabilities * 20_000) < 4


def test_phrases_score_and_join():
    sentences = [["new", "york", "is", "big"]] * 8 + [["is", "new"], ["york", "is", "is"], ["old", "new", "york"]]
    scores = phrase_scores(sentences, discount=5)
    total = sum(len(sentence) for sentence in sentences)
    assert scores["new", "york"] == pytest.approx(total * (9 - 5) / (10 * 10))
    assert ("old", "new") not in scores
    joined = list(join_phrases(sentences, {("new", "york"): 2.0, ("york", "is"): 2.0}, threshold=1.0))
    assert joined[0] == ["new_york", "is", "big"]
    assert joined[-2] == ["york_is", "is"]
    assert list(join_phrases(sentences, scores, threshold=1e9)) == [list(sentence) for sentence in sentences]
    with pytest.raises(DataError, match="empty"):
        phrase_scores([])
