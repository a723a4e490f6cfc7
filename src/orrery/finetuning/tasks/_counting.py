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

    def predict(self, text: str) -> str:
        """Return the likeliest label of a text."""
        sums = list(self.prior)
        for feature in features(text):
            for place, score in enumerate(self.scores.get(feature, ())):
                sums[place] += score
        return self.labels[max(range(len(sums)), key=sums.__getitem__)]


def features(text: str) -> set[str]:
    """Return the words of a text in small letters, and the pairs of neighbours."""
    words = _WORD.findall(text.lower())
    return {*words, *(f"{one} {other}" for one, other in pairwise(words))}


class MostFrequentTag:
    """The tag that a word had most often; a word never seen has the most frequent one of words seen once."""

    def __init__(self, sentences: Iterable[tuple[Sequence[str], Sequence[str]]]) -> None:
        counts: dict[str, Counter[str]] = {}
        for words, tags in sentences:
            for word, tag in zip(words, tags, strict=True):
                counts.setdefault(word, Counter())[tag] += 1
        self.tags = {word: most_frequent(count.elements()) for word, count in counts.items()}
        rare = [tag for count in counts.values() if count.total() == 1 for tag in count]
        self.usual = most_frequent(rare or list(self.tags.values()))

    def predict(self, words: Iterable[str]) -> list[str]:
        """Return the tags of a sentence."""
        return [self.tags.get(word, self.usual) for word in words]


class MostSimilar:
    """The text that shares most with another one: the cosine of TF-IDF vectors of words and pairs of neighbours.

    A feature of a text counts once and weighs ``log(N / n)``, ``n`` being the number of the ``N`` texts that have it
    (Sparck Jones 1972). Of a question only the ``RAREST`` features are looked up, so that common words cost nothing.
    """

    RAREST = 64

    def __init__(self, texts: Sequence[str]) -> None:
        found = [features(text) for text in texts]
        counts = Counter(feature for each in found for feature in each)
        self.weights = {feature: math.log(len(texts) / count) for feature, count in counts.items()}
        self.lengths = [self._length(each) for each in found]
        self.places: dict[str, list[int]] = {}
        for number, each in enumerate(found):
            for feature in each:
                self.places.setdefault(feature, []).append(number)

    def _length(self, known: Iterable[str]) -> float:
        return math.sqrt(sum(self.weights[feature] ** 2 for feature in known)) or 1.0

    def find(self, text: str) -> int:
        """Return the number of the most similar text; of several, and where nothing is shared, the first."""
        known = sorted(features(text) & self.weights.keys(), key=lambda feature: (-self.weights[feature], feature))
        shared: defaultdict[int, float] = defaultdict(float)
        for feature in known[: self.RAREST]:
            for number in self.places[feature]:
                shared[number] += self.weights[feature] ** 2 / self.lengths[number]
        return min(shared, key=lambda number: (-shared[number], number), default=0)
