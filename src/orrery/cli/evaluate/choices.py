"""``orrery evaluate MODEL choices FILE``.

Multiple choice from rows with question, choices and answer: the share of questions whose answer is the most probable
choice, by summed log likelihood and by its mean over characters and over tokens.
--first, --batch-size; --contamination TRAIN; -o FILE, --overwrite; --confidence, --samples, --seed; --device, --dtype.
"""

from typing import Annotated

from orrery.cli.evaluate._items import ALL, Items, carry_out
from orrery.cli.evaluate._trust import PLAIN, Trust
from orrery.cli.places import DATA, MODEL


def choices(
    model: Annotated[str, MODEL], data: Annotated[str, DATA], /, *, items: Items = ALL, trust: Trust = PLAIN
) -> None:
    """Answer multiple-choice questions by the likelihood of each choice behind the question.

    Args:
        model: A decoder.
        data: Rows with question, choices (a list) and answer (a letter, a number from 0, or the choice itself).
        items: Which items, with what, and where the result goes.
        trust: How far the scores can be trusted.
    """
    from orrery.evaluation.benchmarks.choices import evaluate_choices, read_questions

    questions = read_questions(data, items.first)
    carry_out(
        model,
        [data],
        items,
        trust,
        lambda lm, done: evaluate_choices(
            lm, questions, batch_size=items.batch_size, done=done, task="choices", template="question choice", shots=0
        ),
    )
