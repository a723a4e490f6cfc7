"""The course's own way from sentences to a rectangle of ids: truncate, number the words, pad (deck S3)."""

from collections.abc import Iterable, Mapping, Sequence

PAD = "<PAD>"


def truncate(sentences: Iterable[str], block: int) -> list[list[str]]:
    """Return the first ``block`` words of each sentence; words are what whitespace separates."""
    return [sentence.split()[:block] for sentence in sentences]


def word_vocabulary(rows: Iterable[Sequence[str]]) -> dict[str, int]:
    """Number the words: ``<PAD>`` is 0, then all others in the order of their code points.

    Built after truncation, as on the slide: a word that only stands behind the cut gets no number.
    """
    return {word: id for id, word in enumerate([PAD, *sorted({word for row in rows for word in row})])}


def pad(rows: Iterable[Sequence[str]], vocabulary: Mapping[str, int], block: int) -> list[list[int]]:
    """Return rows of exactly ``block`` ids, filled on the right with the id of ``<PAD>``."""
    numbered = ([vocabulary[word] for word in row] for row in rows)
    return [row + [vocabulary[PAD]] * (block - len(row)) for row in numbered]
