r"""ROUGE: how many n-grams, and how long a common subsequence, a text shares with its reference.

Paper: Lin 2004, "ROUGE: A Package for Automatic Evaluation of Summaries". Tokens are runs of a-z and 0-9 in small
letters, as in Google's rouge_score, with which the numbers agree; letters beyond ASCII therefore separate words.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from orrery.scores.porter import porter_stem
from orrery.scores.resampled import AdditiveScore, mean_of
from orrery.scores.signature import signature
from orrery.scores.translation import check_counts

KINDS = ("ROUGE-1", "ROUGE-2", "ROUGE-L", "ROUGE-Lsum")
_WORD = re.compile("[a-z0-9]+")

Tokens = Sequence[str]


@dataclass(frozen=True)
class Overlap:
    """What two texts share, over the length of the text and over that of its reference, from 0 to 1."""

    precision: float
    recall: float

    @property
    def f1(self) -> float:
        r"""The harmonic mean :math:`2 P R / (P + R)`."""
        both = self.precision + self.recall
        return 2 * self.precision * self.recall / both if both else 0.0


def rouge(hypothesis: str, reference: str, stemmed: bool = False) -> dict[str, Overlap]:
    """Return the overlap of a text with its reference, by kind; ``stemmed`` cuts words over 3 letters to their stems.

    ROUGE-L sees each text as one row of words, ROUGE-Lsum line by line.
    """
    cut = _stems if stemmed else _words
    ours, theirs = cut(hypothesis), cut(reference)
    lines = [[cut(line) for line in text.split("\n") if line] for text in (hypothesis, reference)]
    return {
        "ROUGE-1": _shared_ngrams(ours, theirs, 1),
        "ROUGE-2": _shared_ngrams(ours, theirs, 2),
        "ROUGE-L": _overlap(len(_common_places(theirs, ours)), len(ours), len(theirs)),
        "ROUGE-Lsum": _shared_lines(*lines),
    }


def corpus_rouge(
    hypotheses: Sequence[str], *references: Sequence[str], stemmed: bool = False
) -> dict[str, AdditiveScore]:
    """Return the mean F1 over the texts by kind, from 0 to 100; of several references the best one of each text counts.

    Raises:
        DataError: nothing to score, or the numbers of texts differ.
    """
    check_counts(hypotheses, references)
    best: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for hypothesis, *own in zip(hypotheses, *references, strict=True):
        overlaps_of_references = [rouge(hypothesis, reference, stemmed) for reference in own]
        for kind in KINDS:
            best[kind].append(100 * max(overlaps[kind].f1 for overlaps in overlaps_of_references))
    facts = signature(nrefs=len(references), stem=stemmed, of="mean-F1")
    return {kind: mean_of(kind, facts, values, digits=2) for kind, values in best.items()}


def _words(text: str) -> Tokens:
    return _WORD.findall(text.lower())


def _stems(text: str) -> Tokens:
    return [porter_stem(word) if len(word) > 3 else word for word in _words(text)]


def _overlap(shared: int, ours: int, theirs: int) -> Overlap:
    return Overlap(shared / max(ours, 1), shared / max(theirs, 1))


def _shared_ngrams(ours: Tokens, theirs: Tokens, size: int) -> Overlap:
    counts = [Counter(zip(*(words[start:] for start in range(size)), strict=False)) for words in (ours, theirs)]
    return _overlap((counts[0] & counts[1]).total(), counts[0].total(), counts[1].total())


def _shared_lines(ours: Sequence[Tokens], theirs: Sequence[Tokens]) -> Overlap:
    """For each line of the reference, the union of what it has in common with every line; no word counts twice."""
    counts = [Counter(word for line in lines for word in line) for lines in (ours, theirs)]
    left, shared = counts[0] & counts[1], 0
    for line in theirs:
        for place in sorted({place for other in ours for place in _common_places(line, other)}):
            if left[line[place]] > 0:
                left[line[place]] -= 1
                shared += 1
    return _overlap(shared, counts[0].total(), counts[1].total())


def _common_places(words: Tokens, others: Tokens) -> list[int]:
    """Return the places of ``words`` in a longest subsequence common with ``others``, the last of several."""
    table = [[0] * (len(others) + 1)]
    for word in words:
        above, row = table[-1], [0]
        for column, other in enumerate(others):
            row.append(above[column] + 1 if word == other else max(above[column + 1], row[column]))
        table.append(row)
    places, i, j = [], len(words), len(others)
    while i and j:
        if words[i - 1] == others[j - 1]:
            i, j = i - 1, j - 1
            places.append(i)
        elif table[i][j - 1] > table[i - 1][j]:
            j -= 1
        else:
            i -= 1
    return places[::-1]
