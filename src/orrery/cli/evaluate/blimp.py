"""``orrery evaluate MODEL blimp``.

BLiMP: how often the grammatical sentence of a pair is the more probable one, by paradigm, by phenomenon (in capital
letters) and on average over the paradigms.
--file FILE in the place of the named set; --paradigms A,B; --first, --batch-size; --contamination TRAIN; -o FILE,
--overwrite; --confidence, --samples, --seed; --device, --dtype.
"""

from typing import Annotated

from cyclopts import Parameter

from orrery.cli.evaluate._items import ALL, Items, carry_out
from orrery.cli.evaluate._trust import PLAIN, Trust
from orrery.cli.places import DATA, MODEL


def blimp(
    model: Annotated[str, MODEL],
    /,
    *,
    file: Annotated[str, DATA] = "blimp",
    paradigms: Annotated[str, Parameter(help="Names of paradigms, with commas between; all by default.")] = "",
    items: Items = ALL,
    trust: Trust = PLAIN,
) -> None:
    """Compare the probabilities of grammatical and ungrammatical sentences.

    Args:
        model: A decoder.
        file: Rows with uid, term, good and bad, or with the authors' columns; by default the named set.
        paradigms: Which paradigms.
        items: Which items, with what, and where the result goes.
        trust: How far the scores can be trusted.
    """
    from orrery.evaluation.benchmarks.blimp import evaluate_blimp, read_blimp

    names = [name.strip() for name in paradigms.split(",") if name.strip()]
    questions, phenomena = read_blimp(file, items.first, names)
    carry_out(
        model,
        [file],
        items,
        trust,
        lambda lm, done: evaluate_blimp(lm, questions, phenomena, batch_size=items.batch_size, done=done),
    )
