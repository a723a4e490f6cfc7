"""`orrery data clean`: a corpus in, the documents worth training on out, and why the others were dropped."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from orrery.cli.numbers import SHARE
from orrery.errors import UsageError

if TYPE_CHECKING:
    from orrery.checkpoints.outputs import OutputFile
    from orrery.data.filters import Filtered, Rule

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
    overwrite: bool = False,
) -> None:
    """Leave out duplicates and debris; write the rest as JSON lines of name and text.

    Of like documents the first stays. The text is never changed. Memory does not grow with the text: 21 to 43
    bytes a document for --exact, 1 to 2 kB a document kept for --near.

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
        Column of .jsonl files that holds the text.
    overwrite
        Replace the files that are there.
    """
    from orrery.checkpoints.outputs import OutputFile, refuse_same
    from orrery.cli.progress import watched
    from orrery.data.corpora import read_corpus
    from orrery.data.filters import Filtered

    rules = _rules(exact, near, filters, drop_matching)
    target = OutputFile(output, inputs=[source], overwrite=overwrite)
    dropped = OutputFile(report, inputs=[source], overwrite=overwrite) if report else None
    if dropped is not None:
        refuse_same(target, dropped)
    with ExitStack() as files:
        kept = _rows_into(target, files)
        told = _rows_into(dropped, files) if dropped else lambda row: None
        filtered = Filtered(
            watched(read_corpus(source, column=column), "documents", lambda document: len(document.text)),
            rules,
            lambda document, rule, why: told({"name": document.name, "rule": rule, "why": why}),
        )
        for document in filtered:
            kept({"name": document.name, "text": document.text})
    _show(filtered)
    print(f"{output}: {filtered.kept:,} of {filtered.read:,} documents")


def _rules(exact: bool, near: float | None, filters: str | None, drop_matching: str | None) -> "list[Rule]":
    """Return the rules in order, the cheap ones first."""
    from orrery.data.duplicates import ExactDuplicates
    from orrery.data.filters import Matching, parse_rules
    from orrery.data.near_duplicates import NearDuplicates

    rules: list[Rule] = []
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
