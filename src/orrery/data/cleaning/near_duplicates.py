"""Near-duplicates: MinHash signatures of word 5-grams, found by banded hashing; the first of its kind stays.

Broder 1997, "On the resemblance and containment of documents"; bands as in Leskovec, Rajaraman and Ullman,
"Mining of massive datasets", section 3.4.
"""

import hashlib
import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.data.cleaning.duplicates import Numbered
from orrery.data.corpora import Document
from orrery.errors import UsageError

Hashes = NDArray[np.uint64]
Signature = NDArray[np.uint32]

# Scripts without spaces (Thai, kana, Chinese): each character is a word.
_UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")
_AT_ONCE = 1 << 11


def shingles(text: str, words: int = 5) -> Hashes:
    """Return the hashes of the distinct runs of ``words`` words, sorted; a shorter text is one run.

    Words are runs of letters, digits and underscores, without regard to case. A text without words has none.
    """
    words_read = words_of(text)
    if not words_read:
        return np.zeros(0, np.uint64)
    codes = {word: _code(word) for word in set(words_read)}
    hashes = np.array([codes[word] for word in words_read], np.uint64)
    width = min(words, len(words_read))
    runs = np.full(len(words_read) - width + 1, width, np.uint64)
    for place in range(width):
        runs = mixed(runs ^ hashes[place : place + len(runs)])
    return np.unique(runs)


def words_of(text: str) -> list[str]:
    """Return the words of a text in small letters, as `shingles` counts them."""
    return list(_WORD.findall(text.lower()))


def mixed(values: Hashes) -> Hashes:
    """Return a permutation of the 64-bit numbers under which near ones part (splitmix64; Steele et al. 2014)."""
    values = (values + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


class MinHash:
    """Signatures in which two sets agree at each place with the probability of their Jaccard similarity.

    Place k holds the least hash of the set under permutation k: P(min h_k(A) = min h_k(B)) = |A n B| / |A u B|,
    but for the 32 bits that are kept of it.
    """

    def __init__(self, permutations: int = 128, seed: int = 1337) -> None:
        self.keys = np.random.default_rng(seed).integers(2**64, size=permutations, dtype=np.uint64)

    def signature(self, hashes: Hashes) -> Signature:
        """Return the signature of a set that is not empty."""
        parts = (hashes[start : start + _AT_ONCE, None] for start in range(0, len(hashes), _AT_ONCE))
        least = np.min([mixed(part ^ self.keys).min(0) for part in parts], 0)
        return (least >> np.uint64(32)).astype(np.uint32)


def similarity(a: Signature, b: Signature) -> NDArray[np.float64]:
    """Estimate the Jaccard similarity: the share of places that agree, with variance s (1 - s) / places."""
    return np.asarray((a == b).mean(-1), np.float64)


@dataclass(frozen=True)
class Bands:
    """How a signature is cut: two documents are compared where all ``rows`` places of any band agree."""

    bands: int
    rows: int

    def probability(self, similarity: int | float | NDArray[np.float64]) -> float | NDArray[np.float64]:
        """Return the probability that two documents of this Jaccard similarity are compared: 1 - (1 - s^r)^b."""
        return 1 - (1 - similarity**self.rows) ** self.bands


def bands_for(threshold: int | float, permutations: int = 128, missed: float = 0.02) -> Bands:
    """Return the bands with the most rows that miss a pair at the threshold with at most this probability.

    More rows mean fewer needless comparisons. Raises `UsageError` for a threshold outside 0 to 1.
    """
    if not 0 < threshold <= 1:
        raise UsageError(f"a similarity of {threshold:g}", "give a Jaccard similarity above 0, at most 1; 0.8 is usual")
    cuts = [Bands(permutations // rows, rows) for rows in range(1, permutations + 1)]
    return max(
        (cut for cut in cuts if cut.probability(threshold) >= 1 - missed), key=lambda cut: cut.rows, default=cuts[0]
    )


class NearIndex:
    """Signatures by number, and which of them are like a new one.

    Memory a document: 4 bytes for each place of the signature, and 25 to 47 for each band.
    """

    def __init__(self, bands: Bands, permutations: int) -> None:
        self.bands, self.size = bands, 0
        self._signatures = np.zeros((64, permutations), np.uint32)
        # Documents that share a band form a chain: the table knows the last, and each the one before it.
        self._before = np.zeros((64, bands.bands), np.int32)
        self._last = Numbered()

    def add(self, signature: Signature) -> int:
        """Store a signature and return its number, from 0."""
        number = self.size
        if number == len(self._signatures):
            self._signatures = np.concatenate([self._signatures, np.zeros_like(self._signatures)])
            self._before = np.concatenate([self._before, np.zeros_like(self._before)])
        self._signatures[number] = signature
        for band, key in enumerate(self._keys(signature)):
            earlier = self._last.swap(key, number)
            self._before[number, band] = -1 if earlier is None else earlier
        self.size += 1
        return number

    def candidates(self, signature: Signature) -> list[int]:
        """Return the numbers of the signatures that agree with this one in some band, in order."""
        numbers = set()
        for band, key in enumerate(self._keys(signature)):
            number = self._last.get(key)
            while number is not None and number >= 0:
                numbers.add(int(number))
                number = self._before[number, band]
        return sorted(numbers)

    def likenesses(self, signature: Signature, threshold: float) -> list[tuple[int, float]]:
        """Return (number, estimated Jaccard similarity) of the candidates that reach the threshold, in order."""
        numbers = self.candidates(signature)
        estimates = similarity(self._signatures[numbers], signature)
        return [(n, float(s)) for n, s in zip(numbers, estimates, strict=True) if s >= threshold]

    def _keys(self, signature: Signature) -> Iterator[bytes]:
        rows = self.bands.rows
        for band in range(self.bands.bands):
            part = signature[band * rows : (band + 1) * rows].tobytes()
            yield hashlib.blake2b(part, digest_size=12, key=band.to_bytes(4, "little")).digest()


class NearDuplicates:
    """The rule that drops a document like one kept before: estimated Jaccard similarity at or above the threshold.

    Each dropped document is like one that stays, of the same meaning; likeness is not passed on through dropped ones. A
    text without words is like nothing.
    """

    name = "near-duplicate"

    def __init__(self, threshold: int | float = 0.8, permutations: int = 128, seed: int = 1337) -> None:
        self._minhash = MinHash(permutations, seed)
        self._index = NearIndex(bands_for(threshold, permutations), permutations)
        self._threshold = threshold
        self._numbers = array("Q")
        self._meanings: list[str] = []

    def __call__(self, number: int, document: Document) -> str | None:
        """Return which document, by its number, this one is like; None if it stays."""
        hashes = shingles(document.text)
        if not len(hashes):
            return None
        signature = self._minhash.signature(hashes)
        likenesses = self._index.likenesses(signature, self._threshold)
        alike = [pair for pair in likenesses if self._meanings[pair[0]] == document.meaning]
        if not alike:
            self._index.add(signature)
            self._numbers.append(number)
            self._meanings.append(document.meaning)
            return None
        closest, estimate = max(alike, key=lambda pair: pair[1])
        return f"like document {self._numbers[closest]:,} (similarity {estimate:.2f})"


@dataclass(frozen=True)
class Leak:
    """A validation document that is like a training document."""

    validation: str
    train: str
    similarity: float


def leaks(
    train: Iterable[Document], validation: Iterable[Document], threshold: float = 0.8, permutations: int = 128
) -> list[Leak]:
    """Return the pairs of like documents across a split; only the validation text's signatures are in memory."""
    minhash, names = MinHash(permutations), []
    index = NearIndex(bands_for(threshold, permutations), permutations)
    for document in validation:
        if len(hashes := shingles(document.text)):
            index.add(minhash.signature(hashes))
            names.append(document.name)
    leaks = []
    for document in train:
        if len(hashes := shingles(document.text)):
            for number, estimate in index.likenesses(minhash.signature(hashes), threshold):
                leaks.append(Leak(names[number], document.name, estimate))
    return leaks


def _code(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
