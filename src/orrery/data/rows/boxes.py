"""Pictures with things and the boxes around them: COCO's layout, or a table with a column of boxes."""

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from orrery.data import generated
from orrery.data.corpora import read_placed_rows
from orrery.data.files import bad_record, kept
from orrery.data.rows.box_files import of_cvat, of_folder
from orrery.data.rows.pictures import FILES, LabelledPicture, bytes_of, found_at, is_cell, of_cell, of_file, table_in
from orrery.data.rows.ranges import in_range
from orrery.data.rows.things import Thing, box_of, listed
from orrery.errors import DataError

BOXES = ("boxes", "objects", "annotations")
"""Names of the column of a table that holds the things, the likeliest first."""
ROBOFLOW = "_annotations.coco.json"
"""The annotations that lie among the pictures of a part."""


def read_boxed(source: str, pictures: str | None = None, skip_bad: int = 0) -> Iterator[LabelledPicture]:
    """Yield pictures whose target is a tuple of things.

    Args:
        source: a file of annotations as COCO's (``instances_val2017.json``), a table whose columns name a file and
            hold a list of ``{"label": ..., "box": [left, top, width, height]}`` in JSON, a set that is made here, or
            what `orrery.data.rows.box_files` reads.
        pictures: the folder of the pictures of a COCO file; by default that of the file, or of the file's name beside.
        skip_bad: pictures with a box that is none, or without a file, that may be left out.

    Raises:
        DataError: it is none of these, or a box is none.
    """
    name, start, stop = in_range(source)
    return islice(_read(Path(name), pictures, skip_bad), start, stop)


def _read(path: Path, pictures: str | None, skip_bad: int) -> Iterator[LabelledPicture]:
    table = table_in(path)
    if generated.find(str(path)) is not None or table != path:
        return _of_table(table, skip_bad)
    if (folder := of_folder(path, skip_bad)) is not None:
        return folder
    found_at(str(path))
    if path.suffix in (".yaml", ".yml"):
        raise DataError(f"{path} says where the parts lie", "name one: --train FOLDER/images/train, --val with another")
    if path.suffix == ".xml":
        return of_cvat(path, skip_bad)
    file = path / ROBOFLOW if (path / ROBOFLOW).is_file() else path
    return _of_coco(file, pictures, skip_bad) if file.suffix == ".json" else _of_table(path, skip_bad)


def coco(file: Path) -> dict[str, Any]:
    """Return the annotations of a file of COCO's.

    Raises:
        DataError: it has no pictures or no annotations.
    """
    try:
        content = json.loads(bytes_of(file))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} is no JSON: {error}", "get the file again from its source") from error
    if not isinstance(content, dict):
        raise DataError(f"{file} holds no annotations", "a file of COCO's has the lists images and annotations")
    for key in ("images", "annotations"):
        if not isinstance(content.get(key), list) or not content[key]:
            raise DataError(f"{file} has no {key}", "a file of COCO's has the lists images and annotations")
    return content


def folder_of(file: Path, pictures: str | None, first: str) -> Path:
    """Return the folder of the pictures of a file of COCO's, in which the first of them lies.

    Raises:
        DataError: it lies nowhere near.
    """
    part = file.stem.partition("_")[2]
    near = (file.parent, file.parent / "images", file.parent / part, file.parent.parent / part, file.parent.parent)
    places = (Path(pictures),) if pictures is not None else near
    for place in places:
        if (place / first).is_file():
            return place
    raise DataError(f"{file}: its picture {first} is not in {places[0]}", "name the folder: data.pictures")


def _of_coco(file: Path, pictures: str | None, skip_bad: int) -> Iterator[LabelledPicture]:
    content = coco(file)
    names = {each.get("id"): str(each["name"]) for each in content.get("categories") or () if each.get("name")}
    own: dict[Any, list[Any]] = {each.get("id"): [] for each in content["images"]}
    if len(own) < len(content["images"]):
        raise DataError(f"{file}: two of its images have one id", "give each its own, to which its annotations point")
    for annotation in content["annotations"]:
        if annotation.get("image_id") not in own:
            raise DataError(f"{file}: an annotation of the picture {annotation.get('image_id')!r}, which is not there",
                            "images lists every picture")  # fmt: skip
        own[annotation["image_id"]].append(annotation)
    folder = folder_of(file, pictures, str(content["images"][0].get("file_name")))
    rows = ((f"{file}: {each.get('file_name')}", each) for each in content["images"])

    def picture(where: str, image: Mapping[str, Any]) -> LabelledPicture:
        things = tuple(_thing(where, each, names) for each in own[image.get("id")])
        return of_file(folder / str(image.get("file_name")), where, things)

    yield from kept(rows, picture, skip_bad)


def _thing(where: str, annotation: Mapping[str, Any], names: Mapping[Any, str]) -> Thing:
    if "segments_info" in annotation:
        message = f"{where}: a panoptic annotation, of which the things have no boxes of their own"
        raise DataError(message, "take the set's file of instances, instances_*.json")
    number = annotation.get("category_id")
    if number not in names:
        raise bad_record(where, f"a box has the category {number!r}, and categories names {len(names)} others")
    return Thing(names[number], box_of(where, annotation.get("bbox")), bool(annotation.get("iscrowd")))


def _of_table(table: Path, skip_bad: int) -> Iterator[LabelledPicture]:
    first = next((row for _, row in read_placed_rows(table)), {})
    named, boxes = (next((name for name in known if name in first), None) for known in (FILES, BOXES))
    if "ImageID" in first and "XMin" in first:
        hint = "write COCO's JSON of them: fiftyone's export to COCODetectionDataset does"
        raise DataError(f"{table}: boxes as Open Images has them, a row each", hint)
    if named is None or boxes is None:
        lacks, there = "the picture" if named is None else "the boxes", ", ".join(first)[:200] or "none"
        raise DataError(f"{table}: no column is known to hold {lacks} among {there}", f"call one {FILES[0]}, one boxes")
    columns = (named, boxes)

    def picture(where: str, row: object) -> LabelledPicture:
        file, held = (row.get(name) for name in columns)  # type: ignore[attr-defined]
        if not is_cell(file):
            raise bad_record(where, f"it needs a file in {named}")
        return of_cell(file, table.parent, where, tuple(listed(where, held)))

    yield from kept(read_placed_rows(table, columns), picture, skip_bad)
