"""Pictures with sentences about them: COCO's layout, or a table with a column of captions."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from orrery.data import generated
from orrery.data.corpora import archives_in, read_placed_rows
from orrery.data.files import Faults, bad_record, kept, read_lines
from orrery.data.readers.tables import read_csv
from orrery.data.rows.boxes import by_image, coco, file_of, folder_of
from orrery.data.rows.pictures import FILES, LabelledPicture, finder, found_at, is_cell, of_cell, of_file, table_in
from orrery.data.rows.ranges import in_range
from orrery.errors import DataError

CAPTIONS = ("caption", "captions", "text", "sentence", "sentences", "description", "comment")
"""Names of the column of a table that says what a picture shows, the likeliest first."""
_NUMBERED = re.compile(r"\S+#\d+\t")


def read_captioned(source: str, pictures: str | None = None, skip_bad: int = 0) -> Iterator[LabelledPicture]:
    """Yield pictures whose target is a tuple of captions.

    Args:
        source: a file of annotations as COCO's (``captions_val2017.json``), a table whose columns name a file and say
            what it shows (a text, or a list of them), or a set that is made here.
        pictures: the folder of the pictures of a COCO file; by default that of the file, or of the file's name beside.
        skip_bad: pictures without a file or a caption that may be left out.

    Raises:
        DataError: it is none of these, or a picture has no caption.
    """
    name, start, stop = in_range(source)
    file = table_in(Path(name))
    if generated.find(name) is None and found_at(str(file)).suffix == ".json" and not _is_list(file):
        return islice(_of_coco(file, pictures, skip_bad), start, stop)
    tables = archives_in(file) or [file]
    return islice(chain.from_iterable(_of_table(each, skip_bad) for each in tables), start, stop)


def _is_list(file: Path) -> bool:
    with file.open("rb") as content:
        return content.read(100).lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"[")


def _of_coco(file: Path, pictures: str | None, skip_bad: int) -> Iterator[LabelledPicture]:
    content = coco(file)
    said = by_image(file, content)
    folder = folder_of(file, pictures, file_of(content["images"][0]))
    rows = ((f"{file}: {file_of(each)}", each) for each in content["images"])

    def picture(where: str, image: Mapping[str, Any]) -> LabelledPicture:
        captions = [each.get("caption") for each in said[image.get("id")]]
        return of_file(folder / file_of(image), where, _captions(where, captions))

    yield from kept(rows, picture, skip_bad)


def _of_table(table: Path, skip_bad: int) -> Iterator[LabelledPicture]:
    flickr = _of_flickr(table)
    first = next((row for _, row in flickr or read_placed_rows(table)), {})
    named, caption = (next((name for name in known if name in first), None) for known in (FILES, CAPTIONS))
    if named is None or caption is None:
        lacks, there = "the picture" if named is None else "the caption", ", ".join(first)[:200] or "none"
        hint = f"call one {FILES[0]}, one caption"
        raise DataError(f"{table}: no column is known to hold {lacks} among {there}", hint)
    columns = (named, caption)

    def said(where: str, row: Mapping[str, Any]) -> tuple[str, Any, tuple[str, ...]]:
        if not is_cell(row[named]):
            raise bad_record(where, f"it needs a file in {named}")
        return where, row[named], _captions(where, row[caption])

    # Of one picture a table may have a row for each caption, as Flickr8k's has.
    pictures: dict[Any, tuple[str, Any, tuple[str, ...]]] = {}
    for where, file, captions in kept(flickr or read_placed_rows(table, columns), said, skip_bad):
        key = tuple(file.items()) if isinstance(file, Mapping) else file
        place, _, before = pictures.get(key, (where, file, ()))
        pictures[key] = (place, file, (*before, *captions))
    find = finder(table, first[named])
    yield from (of_cell(file, find, where, captions) for where, file, captions in pictures.values())


def _of_flickr(table: Path) -> list[tuple[str, dict[str, Any]]] | None:
    """Return the rows of a file of Flickr8k's or 30k's, or nothing where it is another.

    A line is ``name.jpg#0``, a tab and a caption; ``name.jpg| 0| caption`` below a line of names; or, of captions.txt,
    two columns of CSV.
    """
    if table.suffix.lower() not in (".txt", ".token", ".csv") or not table.is_file():
        return None
    lines = [(line.where, line.text("error")) for line in read_lines(table)]
    head = lines[0][1] if lines else ""
    if _NUMBERED.match(head):
        cut = ((where, line.partition("\t")) for where, line in lines if line.strip())
        return [(where, {FILES[0]: name.rpartition("#")[0], CAPTIONS[0]: text}) for where, (name, _, text) in cut]
    if head.replace(" ", "") == "image_name|comment_number|comment":
        rows = [(where, line.split("|", 2)) for where, line in lines[1:] if line.strip()]
        return [
            (where, {FILES[0]: row[0].strip(), CAPTIONS[0]: row[-1] if len(row) == 3 else ""}) for where, row in rows
        ]
    if table.suffix.lower() == ".txt":
        return [(f"{table}:{number}", row) for number, row in read_csv(table, (), Faults())]
    return None


def _captions(where: str, said: Any) -> tuple[str, ...]:
    """Return the captions of a picture: of a text, a list, or a list in JSON."""
    if isinstance(said, str) and said.startswith("["):
        try:
            said = json.loads(said)
        except ValueError:
            said = [said]  # a caption that begins with a bracket
    found = [said] if isinstance(said, str) else said
    if not isinstance(found, list) or not found or not all(isinstance(each, str) and each.strip() for each in found):
        raise bad_record(where, "it has no caption, or an empty one")
    return tuple(" ".join(each.split()) for each in found)
