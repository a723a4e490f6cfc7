"""Measures of a text that tell prose from other text: lengths, symbols, lines, and how much of it repeats.

Most are those of Gopher (Rae et al. 2021, appendix A1.1). Words are what white space separates; lines and
paragraphs that are blank do not count. A ratio of nothing is 0.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

Measure = Callable[[str], int | float]

BULLETS = ("•", "‣", "▪", "◦", "-", "*")
ELLIPSES = ("...", "…")
SENTENCE_ENDS = (".", "!", "?", '"', "”", "…", "。", "\uff01", "\uff1f")  # the last three: full width
STOP_WORDS = frozenset({"the", "be", "to", "of", "and", "that", "have", "with"})


def characters(text: str) -> int | float:
    """Count the characters."""
    return len(text)


def words(text: str) -> int | float:
    """Count the words."""
    return len(text.split())


def mean_word_length(text: str) -> int | float:
    """Return the mean number of characters of a word."""
    words = text.split()
    return _ratio(sum(map(len, words)), len(words))


def symbol_ratio(text: str, symbols: Sequence[str]) -> int | float:
    """Return the number of symbols over the number of words."""
    return _ratio(sum(text.count(symbol) for symbol in symbols), len(text.split()))


def alphabetic(text: str) -> int | float:
    """Return the share of letters among the characters that are not white space."""
    solid = "".join(text.split())
    return _ratio(sum(map(str.isalpha, solid)), len(solid))


def words_with_letters(text: str) -> int | float:
    """Return the share of words with at least one letter."""
    words = text.split()
    return _ratio(sum(any(map(str.isalpha, word)) for word in words), len(words))


def stop_words(text: str) -> int | float:
    """Count how many of the, be, to, of, and, that, have, with occur at least once."""
    return len(STOP_WORDS & set(re.findall(r"\w+", text.lower())))


def lines_that_end(text: str, ends: Sequence[str]) -> int | float:
    """Return the share of lines that end with one of these."""
    text_lines = lines(text)
    return _ratio(sum(line.endswith(tuple(ends)) for line in text_lines), len(text_lines))


def bullet_lines(text: str) -> int | float:
    """Return the share of lines that start with a bullet."""
    text_lines = lines(text)
    return _ratio(sum(line.startswith(BULLETS) for line in text_lines), len(text_lines))


def lines(text: str) -> list[str]:
    """Return the lines that are not blank, without white space around them."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def paragraphs(text: str) -> list[str]:
    """Return what blank lines separate."""
    return [part.strip() for part in re.split(r"\n\s*\n", text) if part.strip()]


def repeated(parts: Iterable[str]) -> int | float:
    """Return the share of parts that came before."""
    counts = Counter(parts)
    return _ratio(counts.total() - len(counts), counts.total())


def repeated_characters(parts: Iterable[str]) -> int | float:
    """Return the share of characters that lie in parts that came before."""
    counts = Counter(parts)
    total = sum(len(part) * count for part, count in counts.items())
    return _ratio(sum(len(part) * (count - 1) for part, count in counts.items()), total)


def top_gram(text: str, size: int) -> int | float:
    """Return the share of the words' characters in the n-gram that occurs most often, 0 if none occurs twice.

    Of n-grams that occur equally often the longest counts. Occurrences that overlap count fully, so that "a a a"
    can reach more than 1.
    """
    lengths, grams = word_lengths(text), gram_numbers(text, size)
    if not len(grams):
        return 0.0
    _, first, counts = np.unique(grams, return_index=True, return_counts=True)
    inside = np.convolve(lengths, np.ones(size, np.int64), "valid")[first]
    most = counts.max()
    return _ratio(int(most * inside[counts == most].max()), int(lengths.sum())) if most > 1 else 0.0


def duplicate_grams(text: str, size: int) -> int | float:
    """Return the share of the words' characters that lie in some n-gram that occurs more than once.

    Every occurrence counts, the first too; a character in several of them counts once.
    """
    lengths, grams = word_lengths(text), gram_numbers(text, size)
    _, kinds, counts = np.unique(grams, return_inverse=True, return_counts=True)
    starts = np.flatnonzero(counts[kinds] > 1)
    covered = np.zeros(len(lengths), bool)
    for place in range(size):
        covered[starts + place] = True
    return _ratio(int(lengths[covered].sum()), int(lengths.sum()))


@lru_cache(maxsize=1)
def word_lengths(text: str) -> NDArray[np.int64]:
    """Return the number of characters of each word."""
    return np.array([len(word) for word in text.split()], np.int64)


# The n-grams of all sizes up to ten are asked for, one after another, and each is made from the one before.
@lru_cache(maxsize=10)
def gram_numbers(text: str, size: int) -> NDArray[np.int64]:
    """Return a number for the n-gram at each place: equal numbers mean equal n-grams."""
    if size == 1:
        numbers: dict[str, int] = {}
        return np.array([numbers.setdefault(word, len(numbers)) for word in text.split()], np.int64)
    shorter, single = gram_numbers(text, size - 1), gram_numbers(text, 1)
    if len(shorter) < 2:
        return shorter[:0]
    # Numbered again at each size, so that the product stays below 2**63.
    pairs = shorter[:-1] * (single.max() + 1) + single[size - 1 :]
    return np.unique(pairs, return_inverse=True)[1].reshape(-1)


def _ratio(part: int | float, total: int | float) -> int | float:
    return part / total if total else 0.0


MEASURES: dict[str, Measure] = {
    "characters": characters,
    "words": words,
    "mean_word_length": mean_word_length,
    "hash_ratio": partial(symbol_ratio, symbols=("#",)),
    "ellipsis_ratio": partial(symbol_ratio, symbols=ELLIPSES),
    "alphabetic": alphabetic,
    "words_with_letters": words_with_letters,
    "stop_words": stop_words,
    "punctuated_lines": partial(lines_that_end, ends=SENTENCE_ENDS),
    "ellipsis_lines": partial(lines_that_end, ends=ELLIPSES),
    "bullet_lines": bullet_lines,
    "duplicate_lines": lambda text: repeated(lines(text)),
    "duplicate_paragraphs": lambda text: repeated(paragraphs(text)),
    "duplicate_line_characters": lambda text: repeated_characters(lines(text)),
    "duplicate_paragraph_characters": lambda text: repeated_characters(paragraphs(text)),
    **{f"top_{size}_grams": partial(top_gram, size=size) for size in range(2, 5)},
    **{f"duplicate_{size}_grams": partial(duplicate_grams, size=size) for size in range(5, 11)},
}
"""Every measure by the name that a filter gives it."""
