"""Answers of several models together: other seeds, trees, encoders or label vectors."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from orrery.errors import DataError

Answer = Sequence[Mapping[str, Any]]
"""Labels with their scores, the best first, as ``orrery.pipeline("many-labels", MODEL)`` returns them."""


def together(answers: Sequence[Answer], top_k: int = 5) -> list[dict[str, Any]]:
    """Return the labels of the largest mean score over models, as one answer to the same text.

    A label that a model does not name has the score 0 there: ask each for more labels than are wanted. Equal ones stand
    in the order in which they are first named. Chang et al. (KDD 2020) rank with nine models together.

    Args:
        answers: of each model, to one text.
        top_k: how many labels are returned.

    Raises:
        DataError: there is no answer, or ``top_k`` is below 1.
    """
    if not answers or top_k < 1:
        raise DataError(f"{len(answers)} answers, the first {top_k}", "give one answer or more, and 1 label or more")
    sums: defaultdict[Hashable, float] = defaultdict(float)
    for answer in answers:
        for each in answer:
            sums[each["label"]] += each["score"] / len(answers)
    best = sorted(sums, key=lambda label: -sums[label])[:top_k]
    return [{"label": label, "score": sums[label]} for label in best]
