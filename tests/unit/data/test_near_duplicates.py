import itertools
import random

import numpy as np
import pytest

from orrery.data.cleaning import near_duplicates
from orrery.data.cleaning.near_duplicates import (
    Bands,
    MinHash,
    NearDuplicates,
    NearIndex,
    bands_for,
    leaks,
    shingles,
    similarity,
)
from orrery.data.corpora import Document, read_corpus
from orrery.errors import UsageError


def words_of(text: str, size: int = 5) -> set[tuple[str, ...]]:
    """The runs of words as a plain set: nothing hashed."""
    import re

    parts = re.findall(r"\w+", text.lower())
    size = min(size, len(parts))
    return {tuple(parts[i : i + size]) for i in range(len(parts) - size + 1)} if parts else set()


def exact_jaccard(a: str, b: str) -> float:
    x, y = words_of(a), words_of(b)
    return len(x & y) / len(x | y)


def jaccard(a: np.ndarray, b: np.ndarray) -> float:
    """The size of the intersection over that of the union, 0 where both are empty."""
    common = len(np.intersect1d(a, b, assume_unique=True))
    union = len(a) + len(b) - common
    return common / union if union else 0.0


def pair(rng: np.random.Generator, share: float, size: int = 200) -> tuple[np.ndarray, np.ndarray]:
    """Two sets of hashes whose Jaccard similarity is ``share``: common / (common + 2 apart)."""
    common = round(2 * size * share / (1 + share))
    apart = size - common
    hashes = rng.integers(2**64, size=common + 2 * apart, dtype=np.uint64)
    a, b = hashes[: common + apart], np.concatenate([hashes[:common], hashes[common + apart :]])
    return np.unique(a), np.unique(b)


def changed(text: str, every: int, rng: random.Random) -> str:
    """The text with about one word in ``every`` replaced."""
    return " ".join("changed" if rng.random() < 1 / every else word for word in text.split())


@pytest.fixture(scope="module")
def peps(data_set) -> list[Document]:
    data_set("python-peps")
    return list(itertools.islice(read_corpus("python-peps"), 120))


def test_shingles_are_the_distinct_runs_of_words() -> None:
    text = "One two three, four FIVE six: one two three four five."
    assert len(shingles(text)) == len(words_of(text)) == 6  # the first five words come again
    assert np.array_equal(shingles("one TWO three four five"), shingles("One two... three four\nfive!"))
    assert len(shingles("")) == len(shingles(" ... ")) == 0
    assert len(shingles("only three words")) == 1
    assert jaccard(shingles("a b c d e"), shingles("e d c b a")) == 0
    assert len(np.intersect1d(shingles("a b"), shingles("a b a b"))) == 0
    assert len(shingles("吾輩は猫である")) == 3  # scripts without spaces: a character is a word


def test_hashed_similarity_is_the_exact_one(peps: list[Document]) -> None:
    for a, b in itertools.combinations(peps[:10], 2):
        assert jaccard(shingles(a.text), shingles(b.text)) == exact_jaccard(a.text, b.text)
    assert jaccard(shingles(""), shingles("")) == 0


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.8, 0.95])
def test_the_estimate_is_binomial_around_the_exact_similarity(share: float) -> None:
    """The sum of squared standard scores of 200 pairs is chi-square; bounds at five standard deviations."""
    rng, scores = np.random.default_rng(round(100 * share)), []
    for number in range(200):
        a, b = pair(rng, share)
        exact, minhash = jaccard(a, b), MinHash(128, seed=number)
        estimate = float(similarity(minhash.signature(a), minhash.signature(b)))
        scores.append((estimate - exact) / (exact * (1 - exact) / 128) ** 0.5)
    assert abs(np.sum(scores)) < 5 * 200**0.5
    assert abs(np.sum(np.square(scores)) - 200) < 5 * 400**0.5


@pytest.mark.parametrize("bands", [Bands(18, 7), Bands(32, 4), Bands(4, 2)])
def test_candidates_follow_the_s_curve(bands: Bands) -> None:
    rng, chi_square, curve = np.random.default_rng(7), 0.0, (0.3, 0.5, 0.6, 0.7, 0.8, 0.9)
    for share in curve:
        count = expected = variance = 0.0
        for number in range(200):
            a, b = pair(rng, share)
            minhash, index = MinHash(bands.bands * bands.rows, seed=number), NearIndex(bands, bands.bands * bands.rows)
            index.add(minhash.signature(a))
            count += len(index.candidates(minhash.signature(b)))
            chance = 1 - (1 - jaccard(a, b) ** bands.rows) ** bands.bands
            expected, variance = expected + chance, variance + chance * (1 - chance)
        chi_square += (count - expected) ** 2 / max(variance, 0.25)
    assert chi_square < 22.5  # chi-square of six degrees: 0.1 %


def test_the_bands_miss_few_at_the_threshold() -> None:
    assert bands_for(0.8) == Bands(18, 7)
    for threshold in (0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0):
        bands = bands_for(threshold)
        assert bands.bands * bands.rows <= 128
        assert bands.probability(threshold) >= 0.98
        assert Bands(128 // (bands.rows + 1) or 1, bands.rows + 1).probability(threshold) < 0.98 or threshold == 1
    for threshold in (0, -1, 1.1, float("nan")):
        with pytest.raises(UsageError, match="similarity"):
            bands_for(threshold)


def test_every_earlier_signature_of_a_band_is_found() -> None:
    """A chain: three signatures share one band only; the fourth meets them all, whatever came last."""
    index, rng = NearIndex(Bands(4, 2), 8), np.random.default_rng(0)
    rows = rng.integers(2**32, size=(200, 8), dtype=np.uint32)
    rows[[3, 90, 150], 2:4] = 7
    for row in rows[:180]:
        index.add(row)
    probe = rng.integers(2**32, size=8, dtype=np.uint32)
    assert index.candidates(probe) == []
    probe[2:4] = 7
    assert index.candidates(probe) == [3, 90, 150]
    assert index.candidates(np.roll(probe, 2)) == []  # the same numbers in another band say nothing
    for row in rows[:180]:
        same = [n for n in range(180) if any((rows[n][b : b + 2] == row[b : b + 2]).all() for b in (0, 2, 4, 6))]
        assert index.candidates(row) == same


def test_planted_copies_are_found_among_real_documents(peps: list[Document]) -> None:
    """Against brute force over all pairs: nothing far below the threshold falls, everything far above it does."""
    rng = random.Random(1)
    originals = [document for document in peps if len(document.text.split()) > 300][:45]
    copies = [Document(f"copy {i}", changed(d.text, (10, 60, 2000)[i % 3], rng)) for i, d in enumerate(originals)]
    documents = [*peps, *copies]
    rule, hashes = NearDuplicates(0.8), [shingles(document.text) for document in documents]
    stays: list[int] = []
    for number, document in enumerate(documents):
        closest = max((jaccard(hashes[number], hashes[other]) for other in stays), default=0.0)
        dropped = rule(number, document) is not None
        # 0.8 +- 4 standard errors of the estimate, sqrt(0.8 * 0.2 / 128) = 0.035
        assert dropped if closest > 0.94 else True, (document.name, closest)
        assert not dropped if closest < 0.66 else True, (document.name, closest)
        stays += [] if dropped else [number]
    fallen = {document.name for number, document in enumerate(documents) if number not in stays}
    assert {f"copy {i}" for i in range(45) if i % 3 == 2} <= fallen  # one word in 2,000
    assert not {f"copy {i}" for i in range(45) if i % 3 == 0} & fallen  # one word in 10: similarity 0.4


def test_the_first_stays_and_the_reason_names_it() -> None:
    rng = random.Random(0)
    text = " ".join(str(rng.randrange(1000)) for _ in range(500))
    rule = NearDuplicates(0.8)
    assert rule(1, Document("a", "something else entirely, of nine words or so")) is None
    assert rule(2, Document("b", text)) is None
    assert rule(5, Document("c", text + " and one more")).startswith("like document 2 (similarity 0.9")
    assert rule(6, Document("d", "")) is None
    assert rule(7, Document("e", "")) is None  # a text without words is like nothing


def test_likeness_is_not_passed_on_through_dropped_documents() -> None:
    """Three windows of one text: the second is like both others, which are not like each other."""
    words = [str(number) for number in range(1200)]
    windows = [" ".join(words[start : start + 1000]) for start in (0, 80, 160)]
    rule = NearDuplicates(0.8)
    assert [rule(n, Document("", window)) is None for n, window in enumerate(windows)] == [True, False, True]


def test_the_same_seed_gives_the_same_signatures() -> None:
    hashes = shingles("a few words that say something at least")
    first, again, other = (MinHash(64, seed).signature(hashes) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    # Golden: another machine or version of numpy must find the same duplicates.
    assert MinHash(4, 1337).signature(hashes).tolist() == [760711042, 2072836787, 800658556, 1404875383]
    many = np.random.default_rng(0).integers(2**64, size=10_000, dtype=np.uint64)  # over several parts
    halves = [MinHash(64).signature(part) for part in (many[:3000], many[3000:])]
    assert np.array_equal(MinHash(64).signature(many), np.minimum(*halves))


def test_a_leak_across_a_split_is_found(peps: list[Document]) -> None:
    train, validation = peps[:80], [*peps[80:100], Document("leak", changed(peps[7].text, 500, random.Random(2)))]
    leaked = leaks(train, validation, 0.8)
    assert ("leak", peps[7].name) in [(leak.validation, leak.train) for leak in leaked]
    hashes = {document.name: shingles(document.text) for document in [*train, *validation]}
    pairs = itertools.product(validation, train)
    exact = {(v.name, t.name) for v, t in pairs if jaccard(hashes[v.name], hashes[t.name]) > 0.7}
    assert {(leak.validation, leak.train) for leak in leaked} <= exact
    assert leaks(train[:20], validation[:20], 0.99) == []


def test_a_long_document_is_hashed_in_pieces(monkeypatch):
    """All hashes under all keys at once would take a gigabyte for a document of a million words."""
    rows = []
    right = near_duplicates.mixed
    monkeypatch.setattr(near_duplicates, "mixed", lambda values: rows.append(len(values)) or right(values))
    MinHash(16).signature(np.arange(5_000, dtype=np.uint64))
    assert max(rows) <= 2048
    assert sum(rows) == 5_000
