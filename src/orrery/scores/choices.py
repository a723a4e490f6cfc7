"""Multiple choice by likelihood: which of several continuations a model finds most probable.

Paper: Brown et al. 2020, section 2.4, who divide by the number of tokens; lm_eval divides by characters (``acc_norm``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from orrery.errors import DataError
from orrery.scores.resampled import AdditiveScore, Floats, mean_of
from orrery.scores.signature import signature

NORMALISATIONS: dict[str, Callable[["Choices"], Sequence[float]]] = {
    "none": lambda one: one.nats,
    "characters": lambda one: [nats / size for nats, size in zip(one.nats, one.characters, strict=True)],
    "tokens": lambda one: [nats / size for nats, size in zip(one.nats, one.tokens, strict=True)],
}
"""What a log likelihood is divided by. lm_eval's ``acc`` has none, its ``acc_norm`` characters."""


@dataclass(frozen=True)
class Choices:
    """The log likelihoods of the choices of one question.

    Attributes:
        nats: of each choice, summed over its tokens.
        characters: of each, without the blank before it; at least 1.
        tokens: of each.
        answer: the place of the right one.
        group: what it belongs to: a subject, a paradigm.
    """

    nats: tuple[float, ...]
    characters: tuple[int, ...]
    tokens: tuple[int, ...]
    answer: int
    group: str = ""

    def chosen(self, normalisation: str) -> int:
        """Return the choice of the greatest likelihood; of equal ones the first."""
        return int(np.argmax(NORMALISATIONS[normalisation](self)))

    def right(self, normalisation: str) -> bool:
        """Whether that is the answer."""
        return self.chosen(normalisation) == self.answer


def accuracy(questions: Sequence[Choices], normalisation: str, **facts: object) -> AdditiveScore:
    """Return the share of questions whose answer is the most probable choice; ``facts`` go into the signature.

    Raises:
        DataError: there are no questions.
    """
    _refuse_none(questions)
    right = [float(one.right(normalisation)) for one in questions]
    name = "accuracy" if normalisation == "none" else f"accuracy, by {normalisation}"
    return mean_of(name, signature(**facts, normalisation=normalisation), right)


def accuracy_of_groups(questions: Sequence[Choices], normalisation: str, **facts: object) -> AdditiveScore:
    """Return the mean over the groups of the accuracy in each, however many questions it has.

    BLiMP's mean over its 67 paradigms; samples that lack a group take the mean over the others.

    Raises:
        DataError: there are no questions.
    """
    _refuse_none(questions)
    names = sorted({one.group for one in questions})
    places = {name: place for place, name in enumerate(names)}
    sums = np.zeros((len(questions), 2 * len(names)))
    for row, one in enumerate(questions):
        sums[row, places[one.group]] = one.right(normalisation)
        sums[row, len(names) + places[one.group]] = 1

    def of(total: Floats) -> float:
        right, count = np.split(total, 2)
        return float(np.mean(right[count > 0] / count[count > 0]))

    signed = signature(**facts, normalisation=normalisation, mean=f"over {len(names)} groups")
    return AdditiveScore("mean accuracy", signed, sums, of, columns=tuple(names))


def by_group(questions: Sequence[Choices], normalisation: str) -> dict[str, tuple[float, int]]:
    """Return the accuracy and the number of questions of each group, by name."""
    by_name: dict[str, list[bool]] = {}
    for one in questions:
        by_name.setdefault(one.group, []).append(one.right(normalisation))
    return {name: (sum(right) / len(right), len(right)) for name, right in sorted(by_name.items())}


def _refuse_none(questions: Sequence[Choices]) -> None:
    if not questions:
        raise DataError("there are no questions", "give at least one")
