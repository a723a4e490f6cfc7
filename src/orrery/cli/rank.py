"""``orrery rank``: documents in the order in which they fit a query.

It asks no task: a task answers each input by itself, and the place of a document follows from all of its query.
"""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from orrery.cli.numbers import COUNT
from orrery.cli.places import MODEL
from orrery.cli.texts import READING, InputText, TextReading, one_line, print_json, read, run
from orrery.errors import UsageError

if TYPE_CHECKING:
    from orrery.language_model.ranking import PairScore


def rank(
    model: Annotated[str, MODEL],
    query: str | None = None,
    /,
    *documents: str,
    reading: TextReading = READING,
    queries: str | None = None,
    top_n: Annotated[int | None, COUNT] = None,
    prompt: str | None = None,
    truncation: bool = True,
    device: str = "auto",
    dtype: str = "auto",
) -> None:
    """Print documents with their scores, those that fit the query best first: a cross-encoder reads both together.

    A row without a text is passed over.

    Args:
        model: A run, a checkpoint or a folder of a model with a head of one number, or that says how it scores pairs.
        query: What is looked for.
        documents: Texts; without any, those of --file or of standard input.
        reading: Where the documents come from.
        queries: The column of a query in each row, in the place of one for all: the rows of a query are ranked among
            each other.
        top_n: How many documents of a query are printed; by default all.
        prompt: The name of one of the folder's prompts, or a text to put in front of the query, which ends in a blank
            or a colon.
        truncation: Cut a query and a document that are longer than a row, the longer one first.
        device: auto, cpu or cuda.
        dtype: auto, stored, float32, bfloat16, float16 or float64.
    """
    if queries is not None and (query is not None or documents):
        raise UsageError("--queries names a column of --file, which has the queries", "leave the query away")
    if query is None and queries is None:
        raise UsageError("there is no query", "orrery rank MODEL QUERY DOCUMENT ..., or --file FILE --queries COLUMN")
    given = read(documents, reading, None if queries is None else (queries, reading.column))
    from orrery.language_model.load import load

    lm = load(model, device, dtype)
    lm.check_ranks()
    pairs = [(query if queries is None else one.fields[queries], one.fields[reading.column]) for one in given]
    settings: dict[str, Any] = {"prompt": prompt, "truncation": truncation, "batch_size": reading.batch_size}
    scores = run(lambda items, names: lm.pair_scores(items, names=names, **settings), given, pairs)
    if cut := sum(one is not None and one.cut > 0 for one in scores):
        print(f"{cut:,} documents were cut: with their query they are longer than a row", file=sys.stderr)
    by_query = dict[str | None, list[int]]()
    for number, (own, _) in enumerate(pairs):
        by_query.setdefault(own, []).append(number)
    for own, numbers in by_query.items():
        if queries is not None and not reading.json:
            print(f"# {one_line(str(own))}")
        _print(given, scores, numbers, reading, top_n)


def _print(
    given: Sequence[InputText],
    scores: Sequence["PairScore | None"],
    numbers: Sequence[int],
    reading: TextReading,
    top_n: int | None,
) -> None:
    """Print the documents of a query, the best first; their index is their place among those of that query."""
    scored = [(place, number, scores[number]) for place, number in enumerate(numbers)]
    kept = [(place, number, float(one.score)) for place, number, one in scored if one is not None]
    for place, number, score in sorted(kept, key=lambda one: -one[2])[:top_n]:
        if reading.json:
            print_json({**given[number].fields, "index": place, "score": score})
        else:
            print(f"{score:.4f}  {one_line(given[number].fields[reading.column])}")
