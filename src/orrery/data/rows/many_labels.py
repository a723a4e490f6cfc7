"""Texts with any number of labels, from a table, a folder of PECOS or a file of the XMLRepository."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from orrery.data.many_labels.files import is_pecos, is_repository, read_numbered, read_pecos, read_repository, read_two
from orrery.data.rows.labelled import Labelled, find_columns, read_labelled

ONE = ("label", "category", "class", "intent", "topic", "target", "gold_label", "output")
"""Names of a column with one label a text, taken whole; what has another name is cut at the separator."""


def read_many_labels(source: str, settings: Any) -> Iterator[Labelled]:
    """Yield the texts of a source; the labels of a row are a tuple, which may be empty.

    Args:
        source: a table, a named set, or what `orrery.data.many_labels.files` reads.
        settings: the columns ``text``, ``label`` and ``labels``, where they are named; ``separator``; ``invalid``; and
            ``skip_bad``, how many bad rows are left out.

    Raises:
        DataError: the source cannot be read.
    """
    if is_pecos(source):
        yield from read_pecos(source, settings.invalid)
        return
    if is_repository(source):
        yield from read_repository(source, settings.invalid)
        return
    published = read_numbered(source, settings.text or "title", settings.invalid) or read_two(source, settings.invalid)
    if published is not None:
        yield from published
        return
    columns = find_columns(source, {name: getattr(settings, name) for name in ("text", "label", "labels")})
    if settings.label is None and columns.label not in ONE:
        columns = replace(columns, kind="labels")
    how: dict[str, Any] = {"invalid": settings.invalid, "skip_bad": settings.skip_bad}
    for row in read_labelled(source, columns, separator=settings.separator, **how):
        yield replace(row, target=row.classes)
