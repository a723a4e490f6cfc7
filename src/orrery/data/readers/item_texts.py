"""What items are, in words: titles and genres of MovieLens, RecBole's ``.item``, and tables of any kind."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orrery.data.corpora import read_placed_rows
from orrery.data.files import decode, read_lines
from orrery.data.readers.interaction_files import typed_rows
from orrery.data.readers.interactions import ITEMS, column_of, name_of
from orrery.errors import DataError

TEXTS = ("text", "title", "movie_title", "name", "description", "genres", "genre", "class", "categories", "category")
"""Columns that are read as the text, all that are there, in this order."""
FILMS = "::"
"""What separates the fields of movies.dat: number, title, genres."""
GENRES = (
    "unknown", "Action", "Adventure", "Animation", "Children's", "Comedy", "Crime", "Documentary", "Drama", "Fantasy",
    "Film-Noir", "Horror", "Musical", "Mystery", "Romance", "Sci-Fi", "Thriller", "War", "Western",
)  # fmt: skip
"""Those of u.item, a column of 0 or 1 each, in the order of the file u.genre."""


def read_item_texts(source: str | Path, item: str | None = None) -> dict[str, str]:
    """Return the text of each item: ``movies.dat``, ``u.item``, RecBole's ``.item``, or a table with a line of names.

    Of a table the column of the item is ``item`` or found by its name, and the text is all of ``TEXTS`` that are there.
    MovieLens' two older files are in Latin-1, and read so where they are no UTF-8.

    Raises:
        DataError: the file cannot be read, has no column of items or none of texts.
    """
    file, found = Path(source), dict[str, str]()
    rows = _rows(file, source)
    for where, row in rows:
        column = item or column_of(row, ITEMS)
        if column is None or column not in row:
            raise DataError(f"{source}: no column holds the item", f"it has: {', '.join(row)[:200]}")
        parts = [_words(row[name]) for name in TEXTS if row.get(name)]
        if not parts and not any(name in row for name in TEXTS):
            raise DataError(f"{source}: no column is known to hold a text", f"name one of {', '.join(TEXTS)}")
        found[name_of(row, column, where)] = " ".join(" ".join(parts).split())
    if not found:
        raise DataError(f"{source}: 0 items", "check that the file was written whole")
    return found


def _words(value: Any) -> str:
    return " ".join(map(_words, value)) if isinstance(value, list | tuple) else str(value).replace("|", " ")


def _rows(file: Path, source: str | Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return the placed rows of a file of items."""
    if file.suffix.lower() == ".dat" and file.is_file():
        return _films(file)
    if file.name.lower() == "u.item" and file.is_file():
        return _older(file)
    typed = typed_rows(file, ".item", "error")
    return read_placed_rows(source) if typed is None else typed


def _films(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for where, text in _lines(file):
        fields = text.split(FILMS)
        yield where, {"item": fields[0], "title": fields[1] if len(fields) > 1 else "", "genres": "".join(fields[2:3])}


def _older(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for where, text in _lines(file):
        fields = text.split("|")
        genres = [name for name, flag in zip(GENRES, fields[5:], strict=False) if flag.strip() == "1"]
        yield where, {"item": fields[0], "title": "".join(fields[1:2]), "genres": " ".join(genres)}


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines that are not blank; one that is no UTF-8 is read as Latin-1."""
    for line in read_lines(file):
        try:
            text = decode(line.content, line.where, "error")
        except DataError:
            text = line.content.decode("latin-1")
        if text.strip():
            yield line.where, text.rstrip("\r\n")
