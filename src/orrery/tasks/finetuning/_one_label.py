"""What is found of a model that gives each example one label of several."""

from collections.abc import Callable, Sequence
from typing import Any

from orrery.scores import calibration, classification
from orrery.scores.resampled import Resampled
from orrery.tasks.finetuning.findings import Findings, Mistake


def likeliest(by_row: Sequence[Sequence[float]], names: Sequence[str]) -> list[str]:
    """Return the name of the likeliest label of each row."""
    return [names[max(range(len(names)), key=each.__getitem__)] for each in by_row]


def one_label(
    by_row: Sequence[Sequence[float]],
    gold: Sequence[str],
    names: Sequence[str],
    mistake: Callable[[int], Mistake],
    more: Sequence[Resampled] = (),
    **others: Any,
) -> Findings:
    """Return accuracy, F1 and calibration, the confusions and the worst mistakes.

    Args:
        by_row: what the model gives each label of a row, in the order of ``names``.
        gold: the right label of each row.
        names: the labels.
        mistake: returns what is shown of a row by its number.
        more: further scores, told behind F1.
        others: further fields of `Findings`.
    """
    said, numbers = likeliest(by_row, names), [names.index(label) for label in gold]
    labels, counts = classification.confusion(said, gold)
    wrong = [n for n in range(len(gold)) if said[n] != gold[n]]
    return Findings(
        scores=(
            classification.accuracy(said, gold),
            classification.f1(said, gold, "macro"),
            *more,
            calibration.calibration_error(by_row, numbers),
            calibration.negative_log_likelihood(by_row, numbers),
        ),
        confusion=([str(label) for label in labels], counts.tolist()),
        bins=calibration.reliability(by_row, numbers),
        mistakes=[mistake(n) for n in sorted(wrong, key=lambda n: -max(by_row[n]))],
        by_label=[
            (str(each.label), each.precision, each.recall, each.f1, int(each.support))
            for each in classification.by_label(said, gold)
        ],
        **others,
    )
