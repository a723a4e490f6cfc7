"""`orrery data clean`: a corpus in, the documents worth training on out, and why the others were dropped."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from orrery.cli.numbers import SHARE
from orrery.errors import UsageError

if TYPE_CHECKING:
    from orrery.checkpoints.outputs import OutputFile
    from orrery.data.cleaning.filters import Filtered, FilterRule
    from orrery.data.records import Document

PATIENCE, PAUSE = 2.0, 10.0
"""Seconds before progress is shown, and between two lines of it where there is no terminal."""


def clean(
    source: str,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    exact: bool = False,
    near: Annotated[float | None, SHARE] = None,
    filters: str | None = None,
    drop_matching: str | None = None,
    report: Path | None = None,
    column: str = "text",
    apart: str | None = None,
    overwrite: bool = False,
) -> None:
    """Leave out duplicates and what is no prose; write the rest as JSON lines with a name, the text and all columns.

    Of like documents the first stays. Rows with one text and other labels, or another text beside it, are no
    duplicates. The text is never changed. Memory does not grow with the text: 21 to 43 bytes a document for --exact, 1
    to 2 kB a document kept for --near.

    Parameters
    ----------
    source
        python-docs, a named data set, a text or .jsonl file, or a folder of them.
    output
        The .jsonl file to write.
    exact
        Drop documents whose text came before.
    near
        Drop documents like one kept before: MinHash estimate of the Jaccard similarity of word 5-grams at or above
        this; 0.8 is usual.
    filters
        gopher (or gopher-quality, gopher-repetition), and measures with bounds: gopher,characters=200:,alphabetic=0.6:
    drop_matching
        Drop documents with a line that this regular expression matches.
    report
        A .jsonl file for the name, rule and reason of every document dropped.
    column
        Column of tables that holds the text.
    apart
        Columns, with commas between them, that tell texts apart beside those whose names are known: label, answer,
        target, ...
    overwrite
        Replace the files that are there.
    """
    from orrery.checkpoints.outputs import OutputFile, refuse_same
    from orrery.cli.progress import watched
    from orrery.data.cleaning.filters import Filtered
    from orrery.data.corpora import read_corpus
    from orrery.data.rows.columns_that_count import plain

    rules = _rules(exact, near, filters, drop_matching)
    target = OutputFile(output, inputs=[source], overwrite=overwrite)
    dropped = OutputFile(report, inputs=[source], overwrite=overwrite) if report else None
    if dropped is not None:
        refuse_same(target, dropped)
    with ExitStack() as files:
        kept = _rows_into(target, files)
        write_dropped = _rows_into(dropped, files) if dropped else lambda row: None
        documents = _told_apart(read_corpus(source, column=column, whole_rows=True), column, _named(apart))
        filtered = Filtered(
            watched(documents, "documents", lambda document: len(document.text)),
            rules,
            lambda document, rule, why: write_dropped({"name": document.name, "rule": rule, "why": why}),
        )
        for document in filtered:
            kept({"name": document.name, **(plain(_with_text(document.row, column)) or {"text": document.text})})
    _show(filtered)
    print(f"{output}: {filtered.kept:,} of {filtered.read:,} documents")


def _named(columns: str | None) -> list[str]:
    return [name.strip() for name in (columns or "").split(",") if name.strip()]


def _with_text(row: Mapping[str, Any], column: str) -> Mapping[str, Any]:
    """Return a row whose text has a name, also where the columns of its table have none."""
    return {"text" if name == column and name.isdecimal() else name: value for name, value in row.items()}


def _told_apart(documents: "Iterable[Document]", column: str, others: Sequence[str]) -> "Iterator[Document]":
    """Yield documents with what tells those of one text apart, and say once which columns do.

    Raises:
        DataError: a column that is named is not there.
    """
    from orrery.data.readers.columns import check_columns
    from orrery.data.rows.columns_that_count import counted_columns, meaning

    columns_apart: list[str] | None = None
    for document in documents:
        if not document.row:
            yield document
            continue
        check_columns(document.name, document.row, tuple(others))
        named = counted_columns(document.row, column, others)
        columns = [name for name in named if document.row[name] != document.text]  # a set may have a text of its own
        if columns_apart is None and columns:
            print(f"duplicates are alike in {', '.join(columns)} too")
        columns_apart = columns_apart or columns
        yield replace(document, meaning=meaning(document.row, columns))


def _rules(exact: bool, near: float | None, filters: str | None, drop_matching: str | None) -> "list[FilterRule]":
    """Return the rules in order, the cheap ones first."""
    from orrery.data.cleaning.duplicates import ExactDuplicates
    from orrery.data.cleaning.filters import Matching, parse_rules
    from orrery.data.cleaning.near_duplicates import NearDuplicates

    rules: list[FilterRule] = []
    if exact:
        rules.append(ExactDuplicates())
    if drop_matching is not None:
        rules.append(Matching(drop_matching))
    if filters is not None:
        rules.extend(parse_rules(filters))
    if near is not None:
        rules.append(NearDuplicates(near))
    if not rules:
        raise UsageError("nothing to clean by", "give --exact, --near 0.8, --filters gopher or --drop-matching REGEX")
    return rules


def _rows_into(output: "OutputFile", files: ExitStack) -> Callable[[dict[str, Any]], None]:
    """Return what writes a line of JSON to a file that gets its name when ``files`` are closed without an error."""
    stream = files.enter_context(output.lines())
    return lambda row: print(json.dumps(row, ensure_ascii=False), file=stream)


def _show(filtered: "Filtered") -> None:
    from orrery.cli.tables import print_table

    print_table(("what", "documents", "share", "characters, or examples"), filtered.table())
