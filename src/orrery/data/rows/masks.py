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
from orrery.data.pictures.addresses import content_of
from orrery.data.pictures.endings import ENDINGS
from orrery.data.pictures.files import read_indices
from orrery.data.rows.pictures import FILES, TABLES, LabelledPicture, bytes_of, found_at, of_cell, of_file
from orrery.data.rows.ranges import images_of_part, in_range
from orrery.errors import DataError

MASKS = ("mask", "annotation", "segmentation_map", "label", "segmentation")
"""Names of the column of a table that holds the mask, the likeliest first."""
_PICTURES, _CLASSES, _LISTS = "JPEGImages", "SegmentationClass", "ImageSets/Segmentation"
"""Folders of Pascal VOC (Everingham et al. 2010), and where it lists the pictures of each part."""
IMAGES, ANNOTATIONS, NAMES = "images", "annotations", "objectInfo150.txt"
"""Folders and the table of names of ADE20k (Zhou et al. 2017), as its challenge publishes it."""


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
        yield from _of_folders(images, images.parent.parent / ANNOTATIONS / images.name)
        return
    if (voc := _voc(Path(source))) is not None:
        yield from voc
        return
    path = found_at(source)
    if path.suffix.lower() in TABLES:
        yield from _of_table(path, skip_bad)
    elif (path / IMAGES).is_dir():
        yield from _of_folders(path / IMAGES, path / ANNOTATIONS)
    elif path.suffix.lower() == ".json":
        hint = "draw the masks as .png, COCO.annToMask of pycocotools; finetune object-detection reads the boxes"
        raise DataError(f"{source}: COCO's masks, which are polygons, runs of pixels or panoptic", hint)
    else:
        hint = f"it takes a folder with {IMAGES}/ and {ANNOTATIONS}/, or a table with the columns {FILES[0]} and mask"
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
        yield _beside(file, (annotations / file.relative_to(images)).with_suffix(".png"))


def _beside(file: Path, mask: Path) -> LabelledPicture:
    if not mask.is_file():
        raise DataError(f"{file} has no mask {mask}", "a mask has the name of its picture and ends in .png")
    return of_file(file, str(file), PixelMask(str(mask), mask))


def _of_table(table: Path, skip_bad: int) -> Iterator[LabelledPicture]:
    first = next((row for _, row in read_placed_rows(table)), {})
    named, mask = (next((name for name in known if name in first), None) for known in (FILES, MASKS))
    if named is None or mask is None:
        lacks = "the picture" if named is None else "the mask"
        there = ", ".join(first)[:200] or "none"
        raise DataError(f"{table}: no column is known to hold {lacks} among {there}", f"call one {FILES[0]}, one mask")
    columns = (named, mask)

    def picture(where: str, row: object) -> LabelledPicture:
        file, own = (row.get(name) for name in columns)  # type: ignore[attr-defined]
        if not all(isinstance(each, str) and each for each in (file, own)):
            raise bad_record(where, f"it needs a file in {named} and one in {mask}")
        held = content_of(own, where) if own.startswith("data:") else table.parent / own
        return of_cell(file, table.parent, where, PixelMask(f"{where} ({mask})", held))

    yield from kept(read_placed_rows(table, columns), picture, skip_bad)


def counts_of(masks: Sequence[PixelMask]) -> Tensor:
    """Return how often each number from 0 to 255 occurs."""
    found = torch.zeros(256, dtype=torch.long)
    for mask in masks:
        found += mask.numbers().flatten().bincount(minlength=256)
    return found
