"""Pictures with boxes in the layouts of tools: Pascal VOC, YOLO, LabelMe and CVAT, each as pictures with things."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import yaml

from orrery.data.files import bad_record, kept
from orrery.data.pictures.endings import ENDINGS
from orrery.data.pictures.files import dimensions
from orrery.data.rows.pictures import LabelledPicture, bytes_of, of_file
from orrery.data.rows.ranges import parts_in
from orrery.data.rows.things import Thing, box_of
from orrery.errors import DataError

Things = tuple[Path, list[Thing]]
"""The file of a picture, and what it shows."""
_IMAGES, _LABELS, _YAML, _NAMES = "images", "labels", ("data.yaml", "dataset.yaml"), ("classes.txt", "obj.names")
_VOC, _PICTURES, _PARTS = "Annotations", "JPEGImages", "ImageSets/Main"
_DRAWN = ("rectangle", "polygon", "circle")
"""Shapes of LabelMe's that go round a thing; lines and points do not."""
_NO_THINGS = ("points", "polyline", "tag")
"""What CVAT's pictures have that goes round nothing."""


def of_folder(folder: Path, skip_bad: int) -> Iterator[LabelledPicture] | None:
    """Return the pictures of a folder, or nothing where its layout is none of these.

    Raises:
        DataError: a picture has no file, or a box is none; or (YOLO) its classes have no names.
    """
    found = next((made for find in (_voc, _yolo, _labelme) if (made := find(folder)) is not None), None)
    if found is None:
        return None
    items, things = found
    return _pictures(items, things, skip_bad)


def of_cvat(file: Path, skip_bad: int) -> Iterator[LabelledPicture]:
    """Yield the pictures of a file of CVAT's for images, which lie beside it or in ``images``.

    Raises:
        DataError: it is none, a picture has no file, or a box is none.
    """
    root = _xml(file)
    if root.tag != "annotations" or root.find("image") is None:
        raise DataError(f"{file} has no annotations of images", "export it from CVAT as CVAT for images 1.1")

    def things(where: str, image: ElementTree.Element) -> Things:
        name = image.get("name", "")
        near = [folder / name for folder in (file.parent, file.parent / _IMAGES) if (folder / name).is_file()]
        own = [between(where, each.get("label"), _cvat(where, each)) for each in image if each.tag not in _NO_THINGS]
        return near[0] if near else file.parent / name, own

    yield from _pictures(((f"{file}: {each.get('name')}", each) for each in root.findall("image")), things, skip_bad)


def _cvat(where: str, shape: ElementTree.Element) -> list[float]:
    """Return left, top, right and bottom of a polygon of CVAT's, or of a box, which may be turned about its middle."""
    if shape.tag == "polygon":
        return _round(where, [corner.split(",") for corner in shape.get("points", "").split(";")])
    if shape.tag != "box":
        raise bad_record(where, f"a shape called {shape.tag}, and boxes and polygons are read")
    ends = {end: shape.get(end) for end in ("xtl", "ytl", "xbr", "ybr")}
    try:
        left, top, right, bottom, angle = (float(each or "") for each in (*ends.values(), shape.get("rotation", "0")))
    except ValueError:
        raise bad_record(where, f"a box from {ends}") from None
    across, down = abs(math.cos(math.radians(angle))), abs(math.sin(math.radians(angle)))
    width, height = across * (right - left) + down * (bottom - top), down * (right - left) + across * (bottom - top)
    x, y = (left + right) / 2, (top + bottom) / 2
    return [x - width / 2, y - height / 2, x + width / 2, y + height / 2]


def _pictures(
    items: Iterable[tuple[str, Any]], things: Callable[[str, Any], Things], skip_bad: int
) -> Iterator[LabelledPicture]:
    def picture(where: str, item: Any) -> LabelledPicture:
        file, own = things(where, item)
        return of_file(file, where, tuple(own))

    yield from kept(items, picture, skip_bad)


def _voc(folder: Path) -> Any:
    """Return the files of Pascal VOC's: ROOT/train means those that ROOT/ImageSets/Main/train.txt lists."""
    part = folder.parent / _PARTS / f"{folder.name}.txt"
    root = folder.parent if part.is_file() and not folder.exists() else folder
    files = sorted((root / _VOC).glob("*.xml")) or ([] if root != folder else sorted(folder.glob("*.xml")))
    if not files:
        return None
    if root != folder:
        names = [line.split()[0] for line in _lines(part) if line.strip()]
        files = [root / _VOC / f"{name}.xml" for name in names]
    elif parts := sorted(each.stem for each in (root / _PARTS).glob("*.txt") if "_" not in each.stem):
        raise DataError(
            f"{root} holds the parts of a data set: {', '.join(parts)}", f"name one: --train {root / parts[0]}"
        )

    def things(where: str, file: Path) -> Things:
        found = _xml(file)
        name = found.findtext("filename") or file.with_suffix(".jpg").name
        place = (root / _PICTURES / name, file.parent / name, root / _IMAGES / name)
        return next((each for each in place if each.is_file()), place[0]), [
            _object(where, each) for each in found.iter("object")
        ]

    return ((str(file), file) for file in files), things


def _object(where: str, found: ElementTree.Element) -> Thing:
    """Return a thing of Pascal VOC's: pixels count from 1, and the last is in the box; what is difficult is a crowd."""
    ends = [found.findtext(f"bndbox/{end}") for end in ("xmin", "ymin", "xmax", "ymax")]
    return between(where, found.findtext("name"), ends, 1, found.findtext("difficult") == "1")


def _yolo(folder: Path) -> Any:
    """Return the pictures of a folder that has labels beside it: images/train and labels/train, or train/images."""
    inner = folder / _IMAGES if (folder / _IMAGES).is_dir() else folder
    inner = folder.parent / _IMAGES / folder.name if not folder.exists() else inner
    if inner.is_dir() and (parts := parts_in(inner)) and (folder / _LABELS).is_dir():
        raise DataError(f"{folder} holds the parts {', '.join(parts)}", f"name one: --train {folder / parts[0]}")
    places = [place for place, name in enumerate(inner.parts) if name == _IMAGES]
    labels = Path(*inner.parts[: places[-1]], _LABELS, *inner.parts[places[-1] + 1 :]) if places else inner
    files = sorted(file for file in inner.rglob("*") if file.suffix.lower() in ENDINGS) if labels.is_dir() else []
    if not any((labels / file.relative_to(inner)).with_suffix(".txt").is_file() for file in files):
        return None
    names, points = _names(labels)

    def things(where: str, file: Path) -> Things:
        label = (labels / file.relative_to(inner)).with_suffix(".txt")
        size = dimensions(bytes_of(file)) or (0, 0)  # of a damaged file, which is told of when it is decoded
        lines = _lines(label) if label.is_file() and all(size) else []
        numbered = [(f"{label}:{number}", line) for number, line in enumerate(lines, start=1) if line.strip()]
        return file, [_line(place, line, names, size, points) for place, line in numbered]

    return ((str(file), file) for file in files), things


def _names(labels: Path) -> tuple[Mapping[int, str], bool]:
    """Return the names of YOLO's classes, and whether lines have points behind the box."""
    for folder in (labels, *labels.parents[:3]):
        for file in (folder / name for name in _YAML):
            if file.is_file():
                try:
                    said = yaml.safe_load(bytes_of(file))
                    names = said["names"]
                    numbered = names.items() if isinstance(names, dict) else enumerate(names)
                    return {int(number): str(name) for number, name in numbered}, "kpt_shape" in said
                except (yaml.YAMLError, TypeError, KeyError, ValueError) as error:
                    raise DataError(f"{file} names no classes: {str(error)[:80]}", "names: {0: cat, 1: dog}") from None
        for file in (folder / name for name in _NAMES):
            if file.is_file():
                return dict(enumerate(_lines(file))), False
    raise DataError(
        f"{labels}: no {_YAML[0]} and no {_NAMES[0]} above it names the classes", f"write {_NAMES[0]}, a name a line"
    )


def _line(where: str, line: str, names: Mapping[int, str], size: tuple[int, int], points: bool) -> Thing:
    """Return the thing of a line: its class, and its box (middle, width, height) or outline, as shares."""
    try:
        number, *shares = int(line.split()[0]), *map(float, line.split()[1:])
    except ValueError:
        raise bad_record(where, f"no class and shares of a box: {line[:60]!r}") from None
    if number not in names or not names[number]:
        raise bad_record(where, f"the class {number}, and {len(names)} have names")
    rows, columns = size
    if len(shares) == 4 or points:
        x, y, width, height = shares[:4] if len(shares) > 3 else [0.0] * 4
        ends = [x - width / 2, y - height / 2, x + width / 2, y + height / 2]
    else:
        if len(shares) < 6 or len(shares) % 2:  # with one more, a detector's file says how sure it was
            raise bad_record(where, f"{len(shares)} numbers are no box and no outline")
        ends = _round(where, list(zip(shares[::2], shares[1::2], strict=True)))
    scale = (columns, rows, columns, rows)
    return between(where, names[number], [end * side for end, side in zip(ends, scale, strict=True)])


def _labelme(folder: Path) -> Any:
    """Return the files of LabelMe's, one for each picture."""
    files = sorted(folder.glob("*.json"))
    if not files or not isinstance(_json(files[0]).get("shapes"), list):
        return None

    def things(where: str, file: Path) -> Things:
        content = _json(file)
        shapes = content.get("shapes")
        if not isinstance(shapes, list) or not all(isinstance(each, Mapping) for each in shapes):
            raise bad_record(where, "no list of shapes, as LabelMe has them")
        shapes = [each for each in shapes if each.get("shape_type", "polygon") in _DRAWN]
        name = str(content.get("imagePath") or "").replace("\\", "/")
        return folder / name, [between(where, each.get("label"), _shape(where, each)) for each in shapes]

    return ((str(file), file) for file in files), things


def _shape(where: str, shape: Mapping[str, Any]) -> list[float]:
    corners: Any = shape.get("points")
    if shape.get("shape_type") != "circle":
        return _round(where, corners)
    try:
        (x, y), edge = corners
        away = math.dist((x, y), edge)
    except (TypeError, ValueError):
        raise bad_record(where, f"no circle: {str(corners)[:60]}") from None
    return [x - away, y - away, x + away, y + away]


def _round(where: str, corners: Any) -> list[float]:
    """Return left, top, right and bottom of an outline."""
    try:
        across, down = (list(map(float, side)) for side in zip(*corners, strict=True))
        return [min(across), min(down), max(across), max(down)]
    except (TypeError, ValueError):
        raise bad_record(where, f"no outline: {str(corners)[:60]}") from None


def between(where: str, label: Any, ends: Sequence[Any], first: int = 0, crowd: bool = False) -> Thing:
    """Return the thing in a box that has its left, top, right and bottom, which count pixels from ``first``."""
    if not isinstance(label, str) or not label:
        raise bad_record(where, f"a box without a label: {label!r:.40}")
    try:
        left, top, right, bottom = map(float, ends)
    except (TypeError, ValueError):
        raise bad_record(where, f"the box {list(ends)} is no left, top, right and bottom") from None
    left, top = left - first, top - first
    return Thing(label, box_of(where, [left, top, right - left, bottom - top]), crowd)


def _lines(file: Path) -> list[str]:
    try:
        return bytes_of(file).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise DataError(f"{file} is not UTF-8", "convert it: iconv -f LATIN1 -t UTF-8 FILE > NEW") from None


def _xml(file: Path) -> ElementTree.Element:
    try:
        return ElementTree.fromstring(bytes_of(file))
    except ElementTree.ParseError as error:
        raise DataError(f"{file}: not XML: {error}", "get the file again from its source") from None


def _json(file: Path) -> Any:
    try:
        content = json.loads(bytes_of(file))
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file} is no JSON: {error}", "get the file again from its source") from None
    return content if isinstance(content, dict) else {}
