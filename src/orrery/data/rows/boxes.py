"""Pictures with things and the boxes around them: COCO's layout, or a table with a column of boxes."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from orrery.data import generated
from orrery.data.corpora import read_placed_rows
from orrery.data.files import bad_record, kept
from orrery.data.pictures.files import dimensions
from orrery.data.rows.box_files import between, of_cvat, of_folder
from orrery.data.rows.open_images import COLUMNS, read_open_images
from orrery.data.rows.pictures import (
    FILES,
    LABELS,
    LabelledPicture,
    bytes_of,
    finder,
    found_at,
    is_cell,
    of_cell,
    of_file,
    table_in,
)
from orrery.data.rows.ranges import in_range
from orrery.data.rows.things import Thing, box_of, listed
from orrery.errors import DataError

BOXES = ("boxes", "objects", "annotations")
"""Names of the column of a table that holds the things, the likeliest first."""
_TOOLS = {"data": "Label Studio", "regions": "the VGG Image Annotator"}
"""Which tool writes a list or a mapping of objects with such a key."""
ENDS = ("xmin", "ymin", "xmax", "ymax")
"""Columns of a table with a row for each box."""
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
    if path.is_dir() and not (path / ROBOFLOW).is_file() and not any(path.glob("*.parquet")):
        raise _no_boxes(path)
    if path.suffix in (".yaml", ".yml"):
        raise DataError(f"{path} says where the parts lie", "name one: --train FOLDER/images/train, --val with another")
    if path.suffix == ".xml":
        return of_cvat(path, skip_bad)
    file = path / ROBOFLOW if (path / ROBOFLOW).is_file() else path
    return _of_coco(file, pictures, skip_bad) if file.suffix == ".json" else _of_table(path, skip_bad)


def _no_boxes(folder: Path) -> DataError:
    """Return the error for a folder whose layout none reads, by what lies there."""
    hint = "it takes COCO's JSON, a table with boxes, or a folder of Pascal VOC, YOLO or LabelMe"
    if found := sorted(folder.rglob("instances_*.json")) or sorted(folder.rglob(ROBOFLOW)):
        place = found[0].parent if found[0].name == ROBOFLOW else found[0]
        return DataError(f"{folder} holds annotations of COCO's", f"name one: --train {place}")
    if any(folder.rglob("ann/*.json")):
        return DataError(f"{folder}: annotations as Supervisely has them", "export them from there as COCO or YOLO")
    if any(folder.rglob("label_2/*.txt")):
        return DataError(
            f"{folder}: annotations as KITTI has them", "convert them: fiftyone's export to COCODetectionDataset"
        )
    return DataError(f"{folder} holds no pictures with boxes", hint)


def coco(file: Path) -> dict[str, Any]:
    """Return the annotations of a file of COCO's.

    Raises:
        DataError: it has no pictures or no annotations.
    """
    try:
        content = json.loads(bytes_of(file))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} is no JSON: {error}", "get the file again from its source") from error
    _refuse_others(file, content)
    if not isinstance(content, dict):
        raise DataError(f"{file} holds no annotations", "a file of COCO's has the lists images and annotations")
    for key in ("images", "annotations"):
        if not isinstance(content.get(key), list) or not content[key]:
            raise DataError(f"{file} has no {key}", "a file of COCO's has the lists images and annotations")
    return content


def _refuse_others(file: Path, content: Any) -> None:
    """Refuse by their names what other tools and sets write as JSON."""
    each = content[:1] if isinstance(content, list) else [*content.values()][:1] if isinstance(content, dict) else []
    first = each[0] if each and isinstance(each[0], dict) else {}
    if tool := next((tool for key, tool in _TOOLS.items() if key in first), None):
        raise DataError(f"{file}: annotations as {tool} has them", "export them from there as COCO, YOLO or Pascal VOC")
    if "question" in first or (isinstance(content, dict) and {"questions", "task_type"} & set(content)):
        raise DataError(f"{file}: questions about pictures", "no task answers these here; captioning learns captions")
    images = content.get("images") if isinstance(content, dict) else None
    if isinstance(images, list) and images and isinstance(images[0], dict) and "sentences" in images[0]:
        rows = '.images[]|select(.split=="train")|{file_name:.filename,caption:[.sentences[].raw]}'
        raise DataError(f"{file}: the parts of a set in one file, as Karpathy's", f"jq -c '{rows}' FILE > train.jsonl")


def by_image(file: Path, content: Mapping[str, Any]) -> dict[Any, list[Any]]:
    """Return the annotations of each image of a file of COCO's, by its id.

    Raises:
        DataError: two images have one id, or an annotation is of none.
    """
    own: dict[Any, list[Any]] = {each.get("id"): [] for each in content["images"]}
    if len(own) < len(content["images"]):
        raise DataError(f"{file}: two of its images have one id", "give each its own, to which its annotations point")
    for annotation in content["annotations"]:
        if annotation.get("image_id") not in own:
            raise DataError(f"{file}: an annotation of the picture {annotation.get('image_id')!r}, which is not there",
                            "images lists every picture")  # fmt: skip
        own[annotation["image_id"]].append(annotation)
    return own


def file_of(image: Mapping[str, Any]) -> str:
    """Return the file of an image of COCO's, or of LVIS', which has its address alone: the folder and name in it."""
    return str(image.get("file_name") or "/".join(str(image.get("coco_url")).split("/")[-2:]))


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
    names, own = _names(file, content), by_image(file, content)
    folder = folder_of(file, pictures, file_of(content["images"][0]))
    rows = ((f"{file}: {file_of(each)}", each) for each in content["images"])

    def picture(where: str, image: Mapping[str, Any]) -> LabelledPicture:
        things = tuple(_thing(where, each, names) for each in own[image.get("id")])
        found, said = folder / file_of(image), (image.get("height"), image.get("width"))
        there = dimensions(bytes_of(found)) if all(said) else None
        if there not in (None, said):
            size = f"{there[0]} rows and {there[1]} columns"
            raise bad_record(where, f"its file has {size}, its annotations are of {said[0]} and {said[1]}")
        return of_file(found, where, things)

    yield from kept(rows, picture, skip_bad)


def _names(file: Path, content: Mapping[str, Any]) -> dict[Any, str]:
    """Return the names of the categories by their ids; of several with one name those that boxes have get their id too.

    Raises:
        DataError: two have one id.
    """
    pairs = {(each.get("id"), str(each["name"])) for each in content.get("categories") or () if each.get("name")}
    names = dict(pairs)
    if len(names) < len(pairs):
        raise DataError(f"{file}: two of its categories have one id", "give each its own, to which its boxes point")
    boxed = {repr(each.get("category_id")) for each in content["annotations"]}
    numbers = [number for number in names if repr(number) in boxed]
    alike = Counter(names[number] for number in numbers)
    return {**names, **{each: f"{names[each]} ({each})" for each in numbers if alike[names[each]] > 1}}


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
    if boxes is None and named is not None and set(ENDS) <= set(first):
        yield from _of_rows(table, named, next((name for name in LABELS if name in first), ""), skip_bad)
        return
    if set(first) >= COLUMNS:
        yield from read_open_images(table, skip_bad)
        return
    if named is None or boxes is None:
        lacks, there = "the picture" if named is None else "the boxes", ", ".join(first)[:200] or "none"
        raise DataError(f"{table}: no column is known to hold {lacks} among {there}", f"call one {FILES[0]}, one boxes")
    columns, find = (named, boxes), finder(table, first[named])

    def picture(where: str, row: object) -> LabelledPicture:
        file, held = (row.get(name) for name in columns)  # type: ignore[attr-defined]
        if not is_cell(file):
            raise bad_record(where, f"it needs a file in {named}")
        return of_cell(file, find, where, tuple(listed(where, held)))

    yield from kept(read_placed_rows(table, columns), picture, skip_bad)


def _of_rows(table: Path, named: str, label: str, skip_bad: int) -> Iterator[LabelledPicture]:
    """Yield the pictures of a table with a row for each box, as TensorFlow's and Roboflow's CSV have it."""

    def thing(where: str, row: Mapping[str, Any]) -> tuple[str, str, Thing]:
        if not isinstance(row[named], str) or not row[named]:
            raise bad_record(where, f"it needs a file in {named}")
        return where, row[named], between(where, row.get(label), [row[end] for end in ENDS])

    pictures: dict[str, tuple[str, list[Thing]]] = {}
    for where, file, found in kept(read_placed_rows(table), thing, skip_bad):
        pictures.setdefault(file, (where, []))[1].append(found)
    find = finder(table, next(iter(pictures), ""))
    yield from (of_cell(file, find, where, tuple(own)) for file, (where, own) in pictures.items())
