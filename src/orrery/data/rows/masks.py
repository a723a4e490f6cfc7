"""Pictures with a mask that says of each pixel what it belongs to: ADE20k's layout, or a table of both."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor

from orrery.data import generated
from orrery.data.corpora import read_placed_rows
from orrery.data.files import bad_record, kept
from orrery.data.pictures.endings import ENDINGS
from orrery.data.pictures.files import read_indices
from orrery.data.rows.pictures import (
    FILES,
    TABLES,
    LabelledPicture,
    bytes_of,
    finder,
    found_at,
    is_cell,
    of_cell,
    of_file,
)
from orrery.data.rows.ranges import IMAGES, images_of_part, in_range, parts_in
from orrery.errors import DataError

MASKS = ("mask", "annotation", "segmentation_map", "label", "segmentation")
"""Names of the column of a table that holds the mask, the likeliest first."""
_PICTURES, _CLASSES, _LISTS = "JPEGImages", "SegmentationClass", "ImageSets/Segmentation"
"""Folders of Pascal VOC (Everingham et al. 2010), and where it lists the pictures of each part."""
NAMES = "objectInfo150.txt"
"""The table of names of ADE20k (Zhou et al. 2017), as its challenge publishes it."""
ANNOTATIONS = ("annotations", "masks", "labels", "ann_dir", "gtFine")
"""Folders of masks beside those of pictures, the likeliest first."""
_CITY, _CITY_MASK = "_leftImg8bit", "_gtFine_labelTrainIds"
"""How Cityscapes' files of pictures end, and those of masks whose numbers are the 19 classes that count."""


@dataclass(frozen=True)
class PixelMask:
    """The mask of a picture: where errors say it stands, and its file or what that holds."""

    where: str
    given: Path | bytes

    def numbers(self) -> UInt8[Tensor, "rows columns"]:
        """Return the number of each pixel.

        Raises:
            DataError: the file cannot be read, is damaged, or has colours in the place of numbers.
        """
        return read_indices(self.given if isinstance(self.given, bytes) else bytes_of(self.given), self.where)


def read_masked(source: str, skip_bad: int = 0) -> Iterator[LabelledPicture]:
    """Yield pictures whose target is a ``PixelMask``.

    Args:
        source: a folder with the folders ``images`` and ``annotations``, or one part of it (``ADE/training`` for
            ``ADE/images/training``); Pascal VOC's, or a part that it lists (``VOC2012/train``); a table whose columns
            name two files; or a set that is made here.
        skip_bad: rows of a table that may be left out.

    Raises:
        DataError: it is none of these, or a picture has no mask.
    """
    name, start, stop = in_range(source)
    return islice(_read(name, skip_bad), start, stop)


def names_of(source: str) -> Sequence[str]:
    """Return what the numbers of the masks of a source are called, from 0; nothing where it does not say so.

    ADE20k's table names them from 1: 0 is what no class covers.
    """
    name, *_ = in_range(source)
    if (made := generated.find(name)) is not None:
        return made.set.classes
    for folder in (Path(name), Path(name).parent):
        if (folder / NAMES).is_file():
            lines = (folder / NAMES).read_text(encoding="utf-8").splitlines()[1:]
            return ("other", *(line.split("\t")[-1].split(",")[0].strip() for line in lines if line.strip()))
    return ()


def _read(source: str, skip_bad: int) -> Iterator[LabelledPicture]:
    if generated.find(source) is not None:
        yield from _of_table(Path(source), skip_bad)
        return
    if (images := images_of_part(source)) is not None:
        yield from _of_folders(images, _annotations(images.parent) / images.name)
        return
    if (voc := _voc(Path(source))) is not None:
        yield from voc
        return
    path = found_at(source)
    if path.suffix.lower() in TABLES:
        yield from _of_table(path, skip_bad)
    elif found := next((path / name for name in IMAGES if (path / name).is_dir()), None):
        if parts := parts_in(found):
            raise DataError(f"{path} holds the parts {', '.join(parts)}", f"name one: --train {path / parts[0]}")
        yield from _of_folders(found, _annotations(found))
    elif path.suffix.lower() == ".json":
        hint = "draw the masks as .png, COCO.annToMask of pycocotools; finetune object-detection reads the boxes"
        raise DataError(f"{source}: COCO's masks, which are polygons, runs of pixels or panoptic", hint)
    else:
        hint = f"it takes a folder with {IMAGES[0]}/ and {ANNOTATIONS[0]}/, or a table of {FILES[0]} and mask"
        raise DataError(f"{source} holds no pictures with masks", hint)


def _voc(path: Path) -> Iterator[LabelledPicture] | None:
    """Return the pictures of Pascal VOC's that have a mask: all, or those of a part; nothing of another folder."""
    listed = path.parent / _LISTS / f"{path.name}.txt"
    root = path.parent if listed.is_file() and not path.exists() else path
    if not (root / _CLASSES).is_dir() or not (root / _PICTURES).is_dir():
        return None
    if root == path:
        names = sorted(mask.stem for mask in (root / _CLASSES).glob("*.png"))
    else:
        names = listed.read_text(encoding="utf-8").split()
    return (_beside(root / _PICTURES / f"{name}.jpg", root / _CLASSES / f"{name}.png") for name in names)


def _of_folders(images: Path, annotations: Path) -> Iterator[LabelledPicture]:
    files = sorted(file for file in images.rglob("*") if file.suffix.lower() in ENDINGS)
    if not files:
        raise DataError(f"{images} holds no picture ({', '.join(ENDINGS)})", "put the pictures there")
    for file in files:
        mask = (annotations / file.relative_to(images)).with_suffix(".png")
        yield _beside(file, mask.with_name(mask.name.replace(_CITY, _CITY_MASK)))


def _annotations(images: Path) -> Path:
    """Return the folder of masks beside one of pictures."""
    places = [images.parent / name for name in ANNOTATIONS]
    return next((place for place in places if place.is_dir()), places[0])


def _beside(file: Path, mask: Path) -> LabelledPicture:
    if not mask.is_file():
        hint = "a mask has the name of its picture and ends in .png"
        hint = "csCreateTrainIdLabelImgs of the package cityscapesscripts writes it" if _CITY in file.name else hint
        raise DataError(f"{file} has no mask {mask}", hint)
    return of_file(file, str(file), PixelMask(str(mask), mask))


def _of_table(table: Path, skip_bad: int) -> Iterator[LabelledPicture]:
    first = next((row for _, row in read_placed_rows(table)), {})
    named, mask = (next((name for name in known if name in first), None) for known in (FILES, MASKS))
    if named is None or mask is None:
        lacks = "the picture" if named is None else "the mask"
        there = ", ".join(first)[:200] or "none"
        raise DataError(f"{table}: no column is known to hold {lacks} among {there}", f"call one {FILES[0]}, one mask")
    columns = (named, mask)
    find, masks = (finder(table, first[name]) for name in columns)

    def picture(where: str, row: object) -> LabelledPicture:
        file, own = (row.get(name) for name in columns)  # type: ignore[attr-defined]
        if not is_cell(file) or not is_cell(own):
            raise bad_record(where, f"it needs a file in {named} and one in {mask}")
        held = of_cell(own, masks, f"{where} ({mask})", None).given
        assert not isinstance(held, Tensor)  # of a cell are bytes or a file
        return of_cell(file, find, where, PixelMask(f"{where} ({mask})", held))

    yield from kept(read_placed_rows(table, columns), picture, skip_bad)


def counts_of(masks: Sequence[PixelMask]) -> Tensor:
    """Return how often each number from 0 to 255 occurs."""
    found = torch.zeros(256, dtype=torch.long)
    for mask in masks:
        found += mask.numbers().flatten().bincount(minlength=256)
    return found
