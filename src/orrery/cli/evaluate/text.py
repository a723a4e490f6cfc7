"""``orrery evaluate text``: texts against references, without a model.

BLEU, chrF, TER and ROUGE of a file of texts.
--hypotheses FILE --references FILE [FILE ...]; --metrics, --tokenize, --lowercase, --word-order, --stem, --column.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from orrery.errors import MachineError, UsageError

Metric = Literal["bleu", "chrf", "ter", "rouge"]
METRICS: tuple[Metric, ...] = ("bleu", "chrf", "ter", "rouge")


def text(
    *,
    hypotheses: Path | None = None,
    references: Annotated[list[Path] | None, Parameter(consume_multiple=True, negative="")] = None,
    metrics: Annotated[list[Metric] | None, Parameter(consume_multiple=True, negative="")] = None,
    tokenize: Literal["13a", "intl", "char", "zh", "none"] = "13a",
    lowercase: Annotated[bool, Parameter(negative="")] = False,
    word_order: int = 0,
    stem: Annotated[bool, Parameter(negative="")] = False,
    column: str = "text",
) -> None:
    """Score texts against their references by BLEU, chrF, TER and ROUGE.

    Args:
        hypotheses: The texts: one a line, or a column of JSON lines, CSV or Parquet, where they may have line breaks.
        references: What they should have been, in the same order; several files are several references for each.
        metrics: bleu, chrf, ter, rouge; without it, all. The first three need the extra `eval`.
        tokenize: How BLEU cuts words: 13a, intl, char, zh or none.
        lowercase: Let no metric see capital letters (TER and ROUGE never do).
        word_order: Words in chrF's n-grams; 2 is chrF++.
        stem: Cut English words to their stems for ROUGE.
        column: The texts' column, where a file has columns.
    """
    from orrery.evaluation.rouge import corpus_rouge
    from orrery.evaluation.translation import bleu, chrf, ter

    if hypotheses is None or not references:
        raise UsageError("there is nothing to compare", "give --hypotheses FILE and --references FILE")
    wanted = tuple(metrics or METRICS)
    ours = list(texts(hypotheses, column))
    theirs = [same_count(ours, hypotheses, list(texts(file, column)), file) for file in references]
    try:
        if "bleu" in wanted:
            print(bleu(ours, *theirs, tokenize=tokenize, lowercase=lowercase))
        if "chrf" in wanted:
            print(chrf(ours, *theirs, word_order=word_order, lowercase=lowercase))
        if "ter" in wanted:
            print(ter(ours, *theirs))
    except MachineError as error:
        raise MachineError(error.message, f"{error.hint}; or --metrics rouge, which needs nothing") from None
    if "rouge" in wanted:
        way = f"mean F1, nrefs:{len(theirs)}|stem:{'yes' if stem else 'no'}"
        for name, score in corpus_rouge(ours, *theirs, stemmed=stem).items():
            print(f"{name} {score:.2f} ({way})")


def texts(file: Path, column: str) -> Iterator[str]:
    """Yield the lines of a file, or the column of its rows. Raises `DataError` as the readers do."""
    from orrery.data.files import Faults, read_lines
    from orrery.data.formats import is_plain_text, read_documents

    if is_plain_text(file):
        return (line.text("error") for line in read_lines(file))
    return (document.text for document in read_documents(file, file.name, column, Faults()))


def same_count(ours: list[str], file: Path, theirs: list[str], other: Path) -> list[str]:
    """Return the references. Raises `DataError` that names both files where there are more or fewer."""
    from orrery.errors import DataError

    if len(ours) != len(theirs):
        message = f"{file} has {len(ours):,} texts, {other} has {len(theirs):,}"
        raise DataError(message, "text n of one is compared with text n of the other")
    return theirs
