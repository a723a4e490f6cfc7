"""Floors: what counting alone reaches on the same examples."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

_WORD = re.compile(r"\w+|[^\w\s]")


def most_frequent(values: Iterable[str]) -> str:
    """Return the most frequent value; of several the first in alphabetical order."""
    counts = Counter(values)
    return min(counts, key=lambda value: (-counts[value], value))


class NaiveBayes:
    """``argmax_y log p(y) + sum_w log p(w | y)`` over the different words and pairs of neighbours of a text.

    The multinomial model with one added to each count (Laplace), each feature of a text counted once, which suits short
    texts better (Wang and Manning 2012, section 2.1). Features that were never seen are left out.
    """

    def __init__(self, texts: Sequence[str], labels: Sequence[str]) -> None:
        counts = {label: Counter[str]() for label in sorted(set(labels))}
        for text, label in zip(texts, labels, strict=True):
            counts[label].update(features(text))
        self.labels = list(counts)
        self.prior = [math.log(labels.count(label) / len(labels)) for label in self.labels]
        known = {feature for count in counts.values() for feature in count}
        totals = [counts[label].total() + len(known) for label in self.labels]
        self.scores = {
            feature: [
                math.log((counts[label][feature] + 1) / total) for label, total in zip(self.labels, totals, strict=True)
            ]
            for feature in known
        }

    def sums(self, text: str) -> list[float]:
        """Return ``log p(y) + sum_w log p(w | y)`` of each label, in nats."""
        sums = list(self.prior)
        for feature in features(text):
            for place, score in enumerate(self.scores.get(feature, ())):
                sums[place] += score
        return sums

    def predict(self, text: str) -> str:
        """Return the likeliest label of a text."""
        sums = self.sums(text)
        return self.labels[max(range(len(sums)), key=sums.__getitem__)]


def features(text: str) -> set[str]:
    """Return the words of a text in small letters, and the pairs of neighbours."""
    words = _WORD.findall(text.lower())
    return {*words, *(f"{one} {other}" for one, other in pairwise(words))}


def words(text: str) -> set[str]:
    """Return the words of a text in small letters."""
    return set(_WORD.findall(text.lower()))


class MostFrequentTag:
    """The tag that a word had most often; a word never seen has the most frequent one of words seen once."""

    def __init__(self, sentences: Iterable[tuple[Sequence[str], Sequence[str]]]) -> None:
        counts: dict[str, Counter[str]] = {}
        for sentence, tags in sentences:
            for word, tag in zip(sentence, tags, strict=True):
                counts.setdefault(word, Counter())[tag] += 1
        self.tags = {word: most_frequent(count.elements()) for word, count in counts.items()}
        rare = [tag for count in counts.values() if count.total() == 1 for tag in count]
        self.usual = most_frequent(rare or list(self.tags.values()))

    def predict(self, sentence: Iterable[str]) -> list[str]:
        """Return the tags of the words of a sentence."""
        return [self.tags.get(word, self.usual) for word in sentence]


class MostSimilar:
    """The text that shares most with another one: the cosine of TF-IDF vectors of words.

    A word of a text counts once and weighs ``log(N / n)``, ``n`` being the number of the ``N`` texts that have it
    (Sparck Jones 1972). Of a question only the ``RAREST`` words are looked up, so that common ones cost nothing.
    """

    RAREST = 64

    def __init__(self, texts: Sequence[str]) -> None:
        self.places: dict[str, list[int]] = {}
        for number, text in enumerate(texts):
            for word in words(text):
                self.places.setdefault(word, []).append(number)
        self.weights = {word: math.log(len(texts) / len(places)) for word, places in self.places.items()}
        squares = [0.0] * len(texts)
        for word, places in self.places.items():
            for number in places:
                squares[number] += self.weights[word] ** 2
        self.lengths = [math.sqrt(square) or 1.0 for square in squares]

    def find(self, text: str) -> int:
        """Return the number of the most similar text; of several, and where nothing is shared, the first."""
        known = sorted(words(text) & self.weights.keys(), key=lambda word: (-self.weights[word], word))
        shared: defaultdict[int, float] = defaultdict(float)
        for word in known[: self.RAREST]:
            for number in self.places[word]:
                shared[number] += self.weights[word] ** 2 / self.lengths[number]
        return min(shared, key=lambda number: (-shared[number], number), default=0)
