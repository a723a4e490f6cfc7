"""Many texts through a model, a few at once: those of like length together, answers in the order of the texts."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from orrery.errors import UsageError

Answer = TypeVar("Answer")


def in_batches(
    lengths: Sequence[int],
    size: int,
    answer: Callable[[list[int]], Sequence[Answer]],
    done: Callable[[int], None] | None = None,
) -> list[Answer]:
    """Return the answer to each text, ``size`` at once, the longest first: what is too much memory fails at once.

    Args:
        lengths: of each text, in tokens.
        size: texts of a batch.
        answer: from the numbers of a batch's texts to their answers.
        done: told after each batch how many texts are answered.

    Raises:
        UsageError: a batch of less than one.
    """
    if size < 1:
        raise UsageError(f"batch_size = {size} is not possible", "it must be at least 1")
    order = sorted(range(len(lengths)), key=lambda number: -lengths[number])
    answers: dict[int, Answer] = {}
    for start in range(0, len(order), size):
        numbers = order[start : start + size]
        answers.update(zip(numbers, answer(numbers), strict=True))
        if done is not None:
            done(len(answers))
    return [answers[number] for number in range(len(lengths))]
