"""``orrery evaluate text``: texts against references, without a model.

BLEU, chrF, TER and ROUGE of a file of texts.
--hypotheses FILE --references FILE [FILE ...]; --metrics, --tokenize, --lowercase, --word-order, --stem, --column;
--against FILE of a second system, --confidence, --samples, --seed.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from orrery.cli.evaluate._trust import PLAIN, Trust, print_scores
from orrery.cli.numbers import ONE_OR_MORE
from orrery.errors import MachineError, UsageError

if TYPE_CHECKING:
    from orrery.scores.resampled import AdditiveScore

Metric = Literal["bleu", "chrf", "ter", "rouge"]
METRICS: tuple[Metric, ...] = ("bleu", "chrf", "ter", "rouge")


def text(
    *,
    hypotheses: Path | None = None,
    references: Annotated[list[Path] | None, ONE_OR_MORE] = None,
    metrics: Annotated[list[Metric] | None, ONE_OR_MORE] = None,
    tokenize: Literal["13a", "intl", "char", "zh", "none"] = "13a",
    lowercase: Annotated[bool, Parameter(negative="")] = False,
    word_order: int = 0,
    stem: Annotated[bool, Parameter(negative="")] = False,
    column: str = "text",
    against: Path | None = None,
    trust: Trust = PLAIN,
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
        against: The texts of a second system, for paired tests.
        trust: How far the scores can be trusted.
    """
    if hypotheses is None or not references:
        raise UsageError("there is nothing to compare", "give --hypotheses FILE and --references FILE")
    wanted = tuple(metrics or METRICS)
    ours = list(texts(hypotheses, column))
    theirs = [same_count(ours, hypotheses, list(texts(file, column)), file) for file in references]
    systems = [ours]
    if against is not None:
        systems.append(same_count(ours, hypotheses, list(texts(against, column)), against))
    how: dict[str, dict[str, Any]] = {
        "bleu": {"tokenize": tokenize, "lowercase": lowercase},
        "chrf": {"word_order": word_order, "lowercase": lowercase},
        "ter": {},
        "rouge": {"stemmed": stem},
    }
    chosen: dict[str, dict[str, Any]] = {metric: how[metric] for metric in METRICS if metric in wanted}
    try:
        scores, *others = [_scores(system, theirs, chosen) for system in systems]
    except MachineError as error:
        raise MachineError(error.message, f"{error.hint}; or --metrics rouge, which needs nothing") from None
    print_scores(scores, others[0] if others else None, trust)


def _scores(ours: list[str], theirs: list[list[str]], how: dict[str, dict[str, Any]]) -> "list[AdditiveScore]":
    """Return the scores of one system's texts; ``how`` has the metrics and their settings."""
    from orrery.scores.rouge import corpus_rouge
    from orrery.scores.translation import bleu, chrf, ter

    known = {"bleu": bleu, "chrf": chrf, "ter": ter}
    scores = [known[metric](ours, *theirs, **settings) for metric, settings in how.items() if metric in known]
    return scores + (list(corpus_rouge(ours, *theirs, **how["rouge"]).values()) if "rouge" in how else [])


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
