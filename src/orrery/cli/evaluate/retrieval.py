"""``orrery evaluate MODEL retrieval DATA``.

Queries find documents by their vectors: nDCG, MRR, MAP, hits and recall, from BEIR's folders or a table of pairs.
--split test; --query-prompt, --document-prompt; --batch-size; -o FILE, --overwrite; --confidence, --samples, --seed;
--device, --dtype.
"""

from typing import TYPE_CHECKING, Annotated

from orrery.cli.evaluate._items import ALL, Items, carry_out
from orrery.cli.evaluate._trust import PLAIN, Trust
from orrery.cli.places import DATA, MODEL

if TYPE_CHECKING:
    from orrery.evaluation.evaluated import Done, Evaluated
    from orrery.language_model.model import LanguageModel


def retrieval(
    model: Annotated[str, MODEL],
    data: Annotated[str, DATA],
    /,
    *,
    split: str | None = None,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
    items: Items = ALL,
    trust: Trust = PLAIN,
) -> None:
    """Look for the documents that answer queries, by the vectors of both, and score how high they stand.

    Args:
        model: A model whose vectors are compared, as its folder says.
        data: A folder with corpus.jsonl, queries.jsonl and qrels/test.tsv; or a table with a query and a document in
            each row, which finds each document among those of all rows.
        split: Which relevances of the folder, qrels/SPLIT.tsv; by default test.
        query_prompt: The name of one of the folder's prompts, or a text that ends in a blank or a colon; by default the
            prompt called query, where there is one.
        document_prompt: The same for documents; by default the prompt called document, passage or corpus.
        items: Which items, with what, and where the result goes.
        trust: How far the scores can be trusted.
    """
    from orrery.data.rows.retrieval_sets import first_queries, read_retrieval
    from orrery.evaluation.benchmarks.retrieval import evaluate_retrieval

    given = first_queries(read_retrieval(data, split), items.first)

    def evaluate(lm: "LanguageModel", done: "Done") -> "Evaluated":
        prompts = {"query_prompt": query_prompt, "document_prompt": document_prompt}
        return evaluate_retrieval(lm, given, batch_size=items.batch_size, done=done, **prompts)

    carry_out(model, [data], items, trust, evaluate)
