"""What is drawn before the arithmetic: which words stay, how far windows reach, which negatives are taken.

Every number is a function of (key, counter), never of what was drawn before: any worker may draw any chunk.
Compiled where numba is there; plain Python gives the same bytes.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orrery.kernels.compiled import compiled

Ids = NDArray[np.int32]
Ends = NDArray[np.int64]
Labels = NDArray[np.bool_]

GOLDEN, FIRST, SECOND = (np.uint64(x) for x in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
S11, S27, S30, S31, S32 = (np.uint64(x) for x in (11, 27, 30, 31, 32))
LOW = np.uint64(0xFFFFFFFF)
UNIT = 2.0**-53


class Contexts(NamedTuple):
    """Examples before their negatives: the words that are read, cut at ``ends``, and the one word predicted."""

    inputs: Ids
    ends: Ends
    words: Ids


class Targets(NamedTuple):
    """The labelled output rows of each example, cut at ``ends``."""

    rows: Ids
    ends: Ends
    labels: Labels


def stream_key(*numbers: int) -> np.uint64:
    """Return the key of one stream of random numbers: seed, epoch, chunk and purpose."""
    return np.uint64(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])


@compiled
def random_bits(key: Any, counter: Any) -> Any:
    """Return the 64 random bits of number ``counter``: splitmix64 (Steele, Lea and Flood 2014)."""
    z = key + (np.uint64(counter) + np.uint64(1)) * GOLDEN
    z = (z ^ (z >> S30)) * FIRST
    z = (z ^ (z >> S27)) * SECOND
    return z ^ (z >> S31)


@compiled
def subsample(tokens: Ids, starts: Ends, rates: NDArray[np.float64], key: Any) -> tuple[Ids, Ends]:
    """Return the words that stay, each with its own probability, and where the sentences start now."""
    kept, bounds = np.empty(len(tokens), np.int32), np.zeros(len(starts), np.int64)
    count = 0
    for sentence in range(len(starts) - 1):
        for place in range(starts[sentence], starts[sentence + 1]):
            word = tokens[place]
            if float(random_bits(key, place) >> S11) * UNIT < rates[word]:
                kept[count] = word
                count += 1
        bounds[sentence + 1] = count
    return kept[:count], bounds


@compiled
def reach(window: int, key: Any, place: int) -> Any:
    """Return how many words to each side the centre at ``place`` sees: uniform in 1..window."""
    return 1 + np.int64(((random_bits(key, place) >> S32) * np.uint64(window)) >> S32)


@compiled
def skip_gram(kept: Ids, bounds: Ends, window: int, key: Any) -> Contexts:
    """Return one example per (centre, word around it): the word around is read, the centre predicted.

    The paper tells it the other way round, the centre read and each word around predicted. Both give every pair of two
    neighbours in both directions; this is the order of the authors' C program and of gensim. Steps that follow each
    other then read different words, where the other order would take all steps of one centre from the same vector.
    """
    inputs, words = np.empty(2 * window * len(kept), np.int32), np.empty(2 * window * len(kept), np.int32)
    count = 0
    for sentence in range(len(bounds) - 1):
        begin, end = bounds[sentence], bounds[sentence + 1]
        for centre in range(begin, end):
            size = reach(window, key, centre)
            for place in range(max(begin, centre - size), min(end, centre + size + 1)):
                if place != centre:
                    inputs[count], words[count] = kept[place], kept[centre]
                    count += 1
    return Contexts(inputs[:count].copy(), np.arange(1, count + 1), words[:count].copy())


@compiled
def cbow(kept: Ids, bounds: Ends, window: int, key: Any) -> Contexts:
    """Return one example per centre that has a context: all its context words are read, the centre predicted."""
    inputs, words = np.empty(2 * window * len(kept), np.int32), np.empty(len(kept), np.int32)
    ends = np.empty(len(kept), np.int64)
    count = examples = 0
    for sentence in range(len(bounds) - 1):
        begin, end = bounds[sentence], bounds[sentence + 1]
        for centre in range(begin, end):
            size = reach(window, key, centre)
            for place in range(max(begin, centre - size), min(end, centre + size + 1)):
                if place != centre:
                    inputs[count] = kept[place]
                    count += 1
            if end - begin > 1:
                words[examples], ends[examples] = kept[centre], count
                examples += 1
    return Contexts(inputs[:count].copy(), ends[:examples], words[:examples])


@compiled
def with_negatives(words: Ids, negatives: int, limits: NDArray[np.uint32], others: Ids, key: Any) -> Targets:
    """Return each predicted word, true, and its drawn words, false; a draw of the word itself is left out."""
    rows, labels = np.empty(len(words) * (negatives + 1), np.int32), np.zeros(len(words) * (negatives + 1), np.bool_)
    ends = np.empty(len(words), np.int64)
    columns = np.uint64(len(limits))
    count = 0
    for example in range(len(words)):
        rows[count], labels[count] = words[example], True
        count += 1
        for draw in range(example * negatives, (example + 1) * negatives):
            bits = random_bits(key, draw)
            column = np.int64(((bits >> S32) * columns) >> S32)
            drawn = column if (bits & LOW) < np.uint64(limits[column]) else others[column]
            if drawn != words[example]:
                rows[count] = drawn
                count += 1
        ends[example] = count
    return Targets(rows[:count], ends, labels[:count])


@compiled
def with_paths(words: Ids, nodes: Ids, turns: Labels, path_ends: Ends) -> Targets:
    """Return the inner nodes above each predicted word, true where the path turns to the first child."""
    ends = np.empty(len(words), np.int64)
    count = 0
    for example in range(len(words)):
        word = words[example]
        count += path_ends[word] - (path_ends[word - 1] if word else 0)
        ends[example] = count
    rows, labels = np.empty(count, np.int32), np.empty(count, np.bool_)
    for example in range(len(words)):
        last, place = path_ends[words[example]], ends[example]
        first = last - (place - (ends[example - 1] if example else 0))
        for k in range(last - first):
            rows[place - (last - first) + k], labels[place - (last - first) + k] = nodes[first + k], turns[first + k]
    return Targets(rows, ends, labels)
