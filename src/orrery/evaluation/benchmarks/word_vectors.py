"""What word vectors are measured by: analogy questions and human judgements of similarity."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orrery.data.sets import present
from orrery.errors import DataError
from orrery.models.word2vec.vectors import Vectors
from orrery.scores.regression import rank_correlation

SET = "word-similarity"
BATCH = 256
MOST_FREQUENT = 300_000


@dataclass(frozen=True)
class SectionAnswers:
    """How many questions of one section could be asked, and how many were answered right."""

    section: str
    right: int
    asked: int
    skipped: int


@dataclass(frozen=True)
class WordVectorScores:
    """Google's analogies by section, and the rank correlation with WordSim-353 with its pairs used and skipped."""

    analogies: tuple[SectionAnswers, ...]
    similarity: float
    pairs: int
    skipped: int

    @property
    def accuracy(self) -> float:
        """The share of right answers among the questions that could be asked; NaN where none could."""
        answerable = sum(section.asked for section in self.analogies)
        return sum(section.right for section in self.analogies) / answerable if answerable else float("nan")


def measure(vectors: Vectors, folder: Path) -> WordVectorScores:
    """Measure on the data set ``word-similarity`` in the folder of the data sets.

    Raises:
        DataError: the set is not there, or fewer than two of its pairs are known.
    """
    questions, scores = (present(folder, SET, name) for name in ("questions-words.txt", "EN-WS-353-ALL.txt"))
    answers = answer_analogies(vectors, read_questions(questions.read_text(encoding="utf-8").splitlines()))
    lines = (line.split() for line in scores.read_text(encoding="utf-8").splitlines())
    similarity, used, skipped = judge_similarity(vectors, [(one, other, float(score)) for one, other, score in lines])
    return WordVectorScores(tuple(answers), similarity, used, skipped)


def read_questions(lines: Iterable[str]) -> Iterator[tuple[str, tuple[str, str, str, str]]]:
    """Yield (section, four words) from the format of questions-words.txt. Raises `DataError` with the line."""
    section = ""
    for number, line in enumerate(lines, 1):
        words = line.split()
        if words and words[0] == ":":
            section = " ".join(words[1:])
        elif len(words) == 4:
            yield section, (words[0], words[1], words[2], words[3])
        elif words:
            raise DataError(
                f"line {number}: {len(words)} words where an analogy has four", "give `: section` or a b c d"
            )


def answer_analogies(
    vectors: Vectors, questions: Iterable[tuple[str, tuple[str, str, str, str]]], restrict: int = MOST_FREQUENT
) -> list[SectionAnswers]:
    """Answer each question by 3CosAdd among the first ``restrict`` words, all compared without case.

    A question with an unknown word is skipped, and counted. Raises `DataError` if there is no question.
    """
    words = [word.casefold() for word in vectors.words[:restrict]]
    ids = {word: number for number, word in reversed(list(enumerate(words)))}  # the most frequent spelling wins
    known: dict[str, list[list[int]]] = {}
    skipped: dict[str, int] = {}
    for section, four in questions:
        numbers = [ids[word.casefold()] for word in four if word.casefold() in ids]
        known.setdefault(section, [])
        skipped.setdefault(section, 0)
        if len(numbers) == 4:
            known[section].append(numbers)
        else:
            skipped[section] += 1
    if not known:
        raise DataError("no analogy questions", "give lines of four words")
    unit, first = vectors.unit[:restrict], np.array([ids[word] for word in words])
    return [
        SectionAnswers(
            section, _right(unit, np.array(questions, np.int64).reshape(-1, 4), first), len(questions), skipped[section]
        )
        for section, questions in known.items()
    ]


def _right(unit: NDArray[np.float32], questions: NDArray[np.int64], first: NDArray[np.int64]) -> int:
    right = 0
    for start in range(0, len(questions), BATCH):
        a, b, c, answer = questions[start : start + BATCH].T
        scores = (unit[b] - unit[a] + unit[c]) @ unit.T
        for words in (a, b, c):
            scores[first[None, :] == words[:, None]] = -np.inf
        right += int((first[scores.argmax(1)] == answer).sum())
    return right


def judge_similarity(vectors: Vectors, pairs: Iterable[tuple[str, str, float]]) -> tuple[float, int, int]:
    """Return the rank correlation of cosines with human scores, over how many pairs, and how many were skipped."""
    ids = {word.casefold(): word for word in reversed(vectors.words[:MOST_FREQUENT])}
    cosines, scores, skipped = [], [], 0
    for one, other, score in pairs:
        if one.casefold() in ids and other.casefold() in ids:
            cosines.append(vectors.similarity(ids[one.casefold()], ids[other.casefold()]))
            scores.append(score)
        else:
            skipped += 1
    return rank_correlation(cosines, scores), len(cosines), skipped
