"""``orrery evaluate MODEL hellaswag FILE``.

HellaSwag from the authors' JSON lines: which of four endings is the most probable, summed and by characters.
--first, --batch-size; --contamination TRAIN; -o FILE, --overwrite; --confidence, --samples, --seed; --device, --dtype.
"""

from typing import Annotated

from orrery.cli.evaluate._items import ALL, Items, carry_out
from orrery.cli.evaluate._trust import PLAIN, Trust
from orrery.cli.places import DATA, MODEL


def hellaswag(
    model: Annotated[str, MODEL], data: Annotated[str, DATA], /, *, items: Items = ALL, trust: Trust = PLAIN
) -> None:
    """Choose the endings of descriptions by their likelihood.

    Args:
        model: A decoder.
        data: Rows with activity_label, ctx_a, ctx_b, endings and label.
        items: Which items, with what, and where the result goes.
        trust: How far the scores can be trusted.
    """
    from orrery.evaluation.benchmarks.choices import evaluate_choices
    from orrery.evaluation.benchmarks.hellaswag import read_hellaswag

    questions = read_hellaswag(data, items.first)
    carry_out(
        model,
        [data],
        items,
        trust,
        lambda lm, done: evaluate_choices(
            lm, questions, batch_size=items.batch_size, normalisations=("none", "characters"), done=done,
            task="hellaswag", template="lm_eval-1.0", shots=0,
        ),
    )  # fmt: skip
