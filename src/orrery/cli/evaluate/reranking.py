"""``orrery evaluate MODEL reranking FILE``.

The order that a cross-encoder, or vectors, give the candidates of each query: MAP, MRR and nDCG at 10.
--first, --batch-size; -o FILE, --overwrite; --confidence, --samples, --seed; --device, --dtype.
"""

from typing import TYPE_CHECKING, Annotated

from orrery.cli.evaluate._items import ALL, Items, carry_out
from orrery.cli.evaluate._trust import PLAIN, Trust
from orrery.cli.places import DATA, MODEL

if TYPE_CHECKING:
    from orrery.evaluation.evaluated import Done, Evaluated
    from orrery.language_model.model import LanguageModel


def reranking(
    model: Annotated[str, MODEL],
    data: Annotated[str, DATA],
    /,
    *,
    items: Items = ALL,
    trust: Trust = PLAIN,
) -> None:
    """Put the candidates of each query in order, and score how high the right ones stand.

    Args:
        model: A cross-encoder, or a model of vectors.
        data: JSON lines with query, positive, and negative or documents: all candidates, as they were found.
        items: Which items, with what, and where the result goes.
        trust: How far the scores can be trusted.
    """
    from orrery.evaluation.benchmarks.reranking import evaluate_reranking, read_candidates

    queries = read_candidates(data)[: items.first]

    def evaluate(lm: "LanguageModel", done: "Done") -> "Evaluated":
        return evaluate_reranking(lm, queries, batch_size=items.batch_size, done=done)

    carry_out(model, [data], items, trust, evaluate)
