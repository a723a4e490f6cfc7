"""Labelled pictures: IDX files as MNIST's, a folder for each class, or a table that names files and labels."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor

from orrery.data import sets
from orrery.data.corpora import read_placed_rows
from orrery.data.files import bad_record, kept
from orrery.data.pictures.endings import ENDINGS
from orrery.data.pictures.files import read_pixels
from orrery.data.readers.idx import labels_beside, read_idx
from orrery.errors import DataError
from orrery.settings import data_folder

TABLES = (".csv", ".tsv", ".jsonl", ".parquet")
FILES, LABELS = ("file_name", "file", "image", "picture", "path"), ("label", "labels", "class", "category", "target")
"""Names of the columns of a table, the likeliest first."""


@dataclass(frozen=True)
class LabelledPicture:
    """One picture: where it stands, what it shows, and its pixels or the file that holds them.

    Attributes:
        where: as errors name it.
        target: the label.
        given: pixels, or a file.
        key: the sha256 of its bytes, by which equal pictures are known.
    """

    where: str
    target: str
    given: Tensor | Path
    key: str

    @property
    def parts(self) -> tuple[str, ...]:
        """The key: equal pictures are never parted."""
        return (self.key,)

    @property
    def whole(self) -> tuple[str, ...]:
        """The same."""
        return self.parts

    @property
    def classes(self) -> tuple[str, ...]:
        """The label."""
        return (self.target,)

    def pixels(self) -> UInt8[Tensor, "channels rows columns"]:
        """Return the pixels.

        Raises:
            DataError: the file is damaged.
        """
        if isinstance(self.given, Tensor):
            return self.given
        return read_pixels(_content(self.given), self.where)


def read_pictures(source: str, skip_bad: int = 0) -> Iterator[LabelledPicture]:
    """Yield the pictures of a source.

    Args:
        source: a named set, an IDX file of pictures, a folder with one or with a folder for each label, or a table
            whose columns name a file (relative to the table) and a label.
        skip_bad: rows of a table that may be left out.

    Raises:
        DataError: it is none of these, or damaged.
    """
    path = Path(source)
    if source in sets.SETS and not path.exists():
        folder = data_folder()
        path = sets.present(folder, source, sets.SETS[source].files[0].name).parent
    if not path.exists():
        raise DataError(f"{source}: no such file or folder", "check the path")
    if path.is_dir():
        idx = sorted(each for each in path.iterdir() if "images" in each.name and "idx3" in each.name)
        if len(idx) > 1:
            names = ", ".join(each.name for each in idx)
            raise DataError(f"{source} holds several files of pictures: {names}", "name one of them")
        return _of_idx(idx[0]) if idx else _of_folder(path)
    if path.suffix.lower() in TABLES:
        return _of_table(path, skip_bad)
    return _of_idx(path)


def _of_idx(file: Path) -> Iterator[LabelledPicture]:
    pictures, labels = read_idx(file, 3), read_idx(labels_beside(file), 1)
    if len(pictures) != len(labels):
        raise DataError(
            f"{file} has {len(pictures):,} pictures, and there are {len(labels):,} labels",
            "get both files again from their source",
        )
    for number, (pixels, label) in enumerate(zip(pictures, labels, strict=True)):
        key = hashlib.sha256(pixels.tobytes()).hexdigest()
        yield LabelledPicture(f"{file}:{number + 1}", str(label), torch.from_numpy(pixels)[None], key)


def _of_folder(folder: Path) -> Iterator[LabelledPicture]:
    found = False
    for own in sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith(".")):
        for file in sorted(own.rglob("*")):
            if file.suffix.lower() in ENDINGS:
                found = True
                yield _of_file(file, str(file), own.name)
    if not found:
        raise DataError(
            f"{folder} holds no folder with pictures ({', '.join(ENDINGS)})",
            "make a folder for each label and put its pictures there, or give a table of files and labels",
        )


def _of_table(table: Path, skip_bad: int) -> Iterator[LabelledPicture]:
    first = next((row for _, row in read_placed_rows(table)), {})
    named = next((name for name in FILES if name in first), None)
    label = next((name for name in LABELS if name in first), None)
    if named is None or label is None:
        raise DataError(
            f"{table}: no column is known to hold {'the file' if named is None else 'the label'} "
            f"among {', '.join(first)[:200] or 'none'}",
            f"call one {FILES[0]} and one {LABELS[0]}",
        )
    columns = (named, label)

    def picture(where: str, row: object) -> LabelledPicture:
        file, target = (row.get(name) for name in columns)  # type: ignore[attr-defined]
        if not isinstance(file, str) or not file or target in (None, ""):
            raise bad_record(where, f"it needs a file in {named} and a label in {label}")
        return _of_file(table.parent / file, f"{where} ({file})", str(target))

    yield from kept(read_placed_rows(table, columns), picture, skip_bad)


def _of_file(file: Path, where: str, label: str) -> LabelledPicture:
    return LabelledPicture(where, label, file, hashlib.sha256(_content(file)).hexdigest())


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}", "check the path") from error
