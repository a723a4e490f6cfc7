"""``orrery evaluate MODEL similarity FILE``.

Similarity of sentences (STS): Spearman's and Pearson's correlation of the model's scores of pairs with people's.
--first-text, --second-text, --score COLUMN; --first, --batch-size; -o FILE, --overwrite; --confidence, --samples,
--seed; --device, --dtype.
"""

from typing import TYPE_CHECKING, Annotated

from orrery.cli.evaluate._items import ALL, Items, carry_out
from orrery.cli.evaluate._trust import PLAIN, Trust
from orrery.cli.places import DATA, MODEL

if TYPE_CHECKING:
    from orrery.evaluation.evaluated import Done, Evaluated
    from orrery.language_model.model import LanguageModel


def similarity(
    model: Annotated[str, MODEL],
    data: Annotated[str, DATA],
    /,
    *,
    first_text: str | None = None,
    second_text: str | None = None,
    score: str | None = None,
    items: Items = ALL,
    trust: Trust = PLAIN,
) -> None:
    """Compare the scores that a model gives pairs of texts with those of people.

    Args:
        model: A model of vectors, which are compared as its folder says, or a cross-encoder.
        data: A table with two texts and a number in each row: JSON lines, tab-separated, CSV or Parquet.
        first_text: The column of the first text; by default found by its name.
        second_text: The column of the second.
        score: The column of the number.
        items: Which items, with what, and where the result goes.
        trust: How far the scores can be trusted.
    """
    from orrery.evaluation.benchmarks.similarity import evaluate_similarity, read_judged

    pairs = read_judged(data, (first_text, second_text, score))[: items.first]

    def evaluate(lm: "LanguageModel", done: "Done") -> "Evaluated":
        return evaluate_similarity(lm, pairs, batch_size=items.batch_size, done=done)

    carry_out(model, [data], items, trust, evaluate)
