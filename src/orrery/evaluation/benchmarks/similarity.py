"""Similarity of sentences (STS): how the scores of pairs go with those that people gave them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from orrery.data.corpora import read_placed_rows
from orrery.data.readers.columns import check_columns, text_of
from orrery.data.rows.labelled import PAIRS
from orrery.errors import DataError
from orrery.evaluation.benchmarks.retrieval import compared, similarity
from orrery.evaluation.evaluated import Done, Evaluated
from orrery.language_model.model import LanguageModel
from orrery.scores.regression import pearson, spearman

SCORES = ("score", "similarity_score", "similarity", "relatedness_score", "label", "gold", "rating")
"""Names of a column with the number that people gave, the likeliest first."""
SIDES = (("sentence1", "sentence2"), *PAIRS, tuple(f"sentence_{side}" for side in "AB"), ("text1", "text2"), ("a", "b"))


@dataclass(frozen=True)
class Judged:
    """Two texts and the number that people gave them."""

    one: str
    other: str
    score: float


def read_judged(source: str | Path, columns: tuple[str | None, str | None, str | None]) -> list[Judged]:
    """Return the pairs of a table with their numbers.

    Args:
        source: JSON lines, tab-separated, CSV or Parquet.
        columns: those of the two texts and of the number; what is not named is found by its name.

    Raises:
        DataError: a column is missing or holds something else, or there are fewer than two rows.
    """
    judged = list(_judged(source, columns))
    if len(judged) < 2:
        raise DataError(f"{source}: {len(judged)} pairs", "a correlation needs two or more")
    return judged


def _judged(source: str | Path, columns: tuple[str | None, str | None, str | None]) -> Iterator[Judged]:
    known: tuple[str, str, str] | None = None
    for where, row in read_placed_rows(source, tuple(filter(None, columns)) if all(columns) else ()):
        known = known or _known(str(source), list(row), columns)
        value = row[known[2]]
        try:
            number = float("nan") if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            number = float("nan")
        if not abs(number) < float("inf"):
            raise DataError(f"{where}: column {known[2]!r} is {str(value)[:40]!r}, no number", "mend the line")
        yield Judged(text_of(row, known[0], where), text_of(row, known[1], where), number)


def _known(source: str, names: list[str], columns: tuple[str | None, str | None, str | None]) -> tuple[str, str, str]:
    check_columns(source, names, tuple(filter(None, columns)))
    first, second, score = columns
    pair = next(((a, b) for a, b in SIDES if first in (None, a) and second in (None, b) and {a, b} <= set(names)), None)
    one, other = first or (pair and pair[0]), second or (pair and pair[1])
    number = score or next((name for name in SCORES if name in names and name not in (one, other)), None)
    if one is None or other is None or number is None:
        message = f"{source}: no columns are known to hold two texts and a number among {', '.join(names)[:200]}"
        raise DataError(message, "name them: --first-text COLUMN --second-text COLUMN --score COLUMN")
    return one, other, number


def evaluate_similarity(
    lm: LanguageModel, pairs: list[Judged], *, batch_size: int = 32, done: Done | None = None
) -> Evaluated:
    """Return the correlations of a model's scores with people's: Spearman's of ranks, and Pearson's.

    The score of a pair is how near its vectors are, as the folder compares them, or of a cross-encoder what it says of
    both texts together.

    Args:
        lm: the model.
        pairs: with their numbers.
        batch_size: texts or pairs computed at once.
        done: told after each batch.
    """
    said = done if done is not None else lambda text: None
    how: dict[str, Any] = {"done": lambda count, total: said(f"{count:,} of {total:,} texts"), "batch_size": batch_size}
    if lm.is_cross_encoder:
        lm.check_ranks()
        kind, scores = "both texts together", lm.score_pairs([(pair.one, pair.other) for pair in pairs], **how)
    else:
        kind = similarity(lm)
        both_NE = lm.embed([text for pair in pairs for text in (pair.one, pair.other)], truncation=True, **how)
        rows = zip(both_NE[::2].split(1), both_NE[1::2].split(1), strict=True)
        scores = torch.cat([compared(kind, one, other)[0] for one, other in rows])
    scored, gold = scores.double().tolist(), [pair.score for pair in pairs]
    centre = sum(gold) / len(gold)
    details = [
        {"first": pair.one, "second": pair.other, "people": pair.score, "model": round(score, 6)}
        for pair, score in zip(pairs, scored, strict=True)
    ]
    items = [f"{pair.one}\n{pair.other}" for pair in pairs]
    return Evaluated(
        [spearman(scored, gold), pearson(scored, gold, centre)], items, details, notes=[f"scored by {kind}"]
    )
