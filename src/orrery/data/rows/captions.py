"""Pictures with sentences about them: COCO's layout, or a table with a column of captions."""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from orrery.data import generated
from orrery.data.corpora import read_placed_rows
from orrery.data.files import bad_record, kept
from orrery.data.rows.boxes import coco, folder_of
from orrery.data.rows.pictures import FILES, LabelledPicture, found_at, is_cell, of_cell, of_file, table_in
from orrery.data.rows.ranges import in_range
from orrery.errors import DataError

CAPTIONS = ("caption", "captions", "text", "sentence", "description")
"""Names of the column of a table that says what a picture shows, the likeliest first."""


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
    if generated.find(name) is None and found_at(name).suffix == ".json":
        return islice(_of_coco(Path(name), pictures, skip_bad), start, stop)
    return islice(_of_table(table_in(Path(name)), skip_bad), start, stop)


def _of_coco(file: Path, pictures: str | None, skip_bad: int) -> Iterator[LabelledPicture]:
    content = coco(file)
    said: dict[Any, list[Any]] = {}
    for annotation in content["annotations"]:
        said.setdefault(annotation.get("image_id"), []).append(annotation.get("caption"))
    folder = folder_of(file, pictures, str(content["images"][0].get("file_name")))
    rows = ((f"{file}: {each.get('file_name')}", each) for each in content["images"])

    def picture(where: str, image: Mapping[str, Any]) -> LabelledPicture:
        return of_file(folder / str(image.get("file_name")), where, _captions(where, said.get(image.get("id"))))

    yield from kept(rows, picture, skip_bad)


def _of_table(table: Path, skip_bad: int) -> Iterator[LabelledPicture]:
    first = next((row for _, row in read_placed_rows(table)), {})
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
    for where, file, captions in kept(read_placed_rows(table, columns), said, skip_bad):
        key = tuple(file.items()) if isinstance(file, Mapping) else file
        place, _, before = pictures.get(key, (where, file, ()))
        pictures[key] = (place, file, (*before, *captions))
    yield from (of_cell(file, table.parent, where, captions) for where, file, captions in pictures.values())


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
