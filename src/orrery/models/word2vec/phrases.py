"""Phrases: two words that stand together far more often than chance become one word."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from orrery.errors import DataError


def phrase_scores(sentences: Iterable[Sequence[str]], discount: int = 5) -> dict[tuple[str, str], float]:
    r"""Return the score of each neighbouring pair seen more than ``discount`` times.

    .. math:: s(a, b) = N \frac{c(ab) - \delta}{c(a)\, c(b)}

    Paper: Mikolov et al. 2013b, equation 6. The factor N, the words of the corpus, is the C program's: it makes
    one threshold fit corpora of every size. Raises `DataError` for a corpus without words.
    """
    words: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for sentence in sentences:
        words.update(sentence)
        pairs.update(pairwise(sentence))
    if not words:
        raise DataError("the corpus is empty: it has no words", "give it sentences, each a list of words")
    total = words.total()
    return {
        (a, b): total * (count - discount) / (words[a] * words[b])
        for (a, b), count in pairs.items()
        if count > discount
    }


def join_phrases(
    sentences: Iterable[Sequence[str]], scores: Mapping[tuple[str, str], float], threshold: float = 100.0
) -> Iterator[list[str]]:
    """Yield the sentences with each pair above ``threshold`` as one word ``a_b``, from the left, none overlapping.

    Run it again over its own result, with a lower threshold, for phrases of three and four words.
    """
    for sentence in sentences:
        joined: list[str] = []
        place = 0
        while place < len(sentence):
            pair = tuple(sentence[place : place + 2])
            size = 2 if len(pair) == 2 and scores.get((pair[0], pair[1]), 0.0) > threshold else 1
            joined.append("_".join(pair[:size]))
            place += size
        yield joined
