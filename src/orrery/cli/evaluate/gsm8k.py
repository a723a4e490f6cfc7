"""``orrery evaluate MODEL gsm8k``.

GSM8K: exact match of the number that a worked answer ends with, behind #### and wherever it stands.
--file FILE (gsm8k/test), --shots 5 of --examples FILE (gsm8k/train), --max-new-tokens; --first, --batch-size;
--contamination TRAIN; -o FILE, --overwrite; --confidence, --samples, --seed; --device, --dtype.
"""

from typing import Annotated

from orrery.cli.evaluate._items import ALL, Items, carry_out
from orrery.cli.evaluate._trust import PLAIN, Trust
from orrery.cli.numbers import COUNT, COUNT_OR_NONE
from orrery.cli.places import DATA, MODEL
from orrery.errors import UsageError

EXAMPLES = "gsm8k/train"


def gsm8k(
    model: Annotated[str, MODEL],
    /,
    *,
    file: Annotated[str, DATA] = "gsm8k/test",
    examples: str | None = None,
    shots: Annotated[int, COUNT_OR_NONE] = 5,
    max_new_tokens: Annotated[int, COUNT] = 256,
    items: Items = ALL,
    trust: Trust = PLAIN,
) -> None:
    """Solve word problems behind worked examples, and compare the numbers.

    Args:
        model: A model that writes.
        file: Rows with question and answer, the answer ending in #### and its number.
        examples: Where the examples come from: the first ones of gsm8k/train, or of this file.
        shots: How many.
        max_new_tokens: The most tokens of an answer.
        items: Which items, with what, and where the result goes.
        trust: How far the scores can be trusted.
    """
    from orrery.evaluation.benchmarks.gsm8k import evaluate_gsm8k, read_problems

    if examples is not None and not shots:
        raise UsageError("--examples with --shots 0: no example is shown", "--shots 5, or leave out --examples")
    shown_from = examples or EXAMPLES
    problems = read_problems(file, items.first)
    shown = read_problems(shown_from, shots) if shots else []
    carry_out(
        model,
        [file, shown_from] if shots else [file],
        items,
        trust,
        lambda lm, done: evaluate_gsm8k(
            lm, problems, shown, max_new_tokens=max_new_tokens, batch_size=items.batch_size, done=done
        ),
    )
