"""Labelled pictures: IDX files as MNIST's, a folder for each class, or a table that names files and labels."""

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from orrery.data import generated, sets
from orrery.data.corpora import archives_in, read_placed_rows
from orrery.data.files import bad_record, kept
from orrery.data.formats import format_of
from orrery.data.pictures.addresses import content_of, is_address
from orrery.data.pictures.endings import ENDINGS
from orrery.data.pictures.files import read_pixels
from orrery.data.readers.columns import are_numbers, check_columns
from orrery.data.readers.idx import labels_beside, read_idx
from orrery.data.readers.stacks import Stack, stacks_of
from orrery.data.rows.ranges import in_range, part_of
from orrery.errors import DataError
from orrery.settings import data_folder

TABLES = (".csv", ".tsv", ".jsonl", ".parquet", ".tar")
FILES = (
    "file_name", "file", "image", "img", "picture", "path", "filename", "image_path", "img_path", "file_path",
    "filepath", "image_name", "pixel_values", "image_id",
)  # fmt: skip
LABELS = ("label", "labels", "class", "category", "target", "fine_label")
"""Names of the columns of a table, the likeliest first."""
METADATA = "metadata"
"""The table in a folder of pictures that says what they show, as the library `datasets` has it."""
_PIXELS = ("pixel0", "pixel1", "pixels", "1x1")
"""Columns of tables that write each pixel as a number."""
_OTHERS = (".tif", ".tiff", ".heic", ".heif", ".avif", ".svg", ".jp2", ".ppm", ".dcm")
"""Endings of picture files that are not read."""
logger = logging.getLogger(__name__)


Columns = tuple[str | None, str | None]
"""The columns of a table that hold the file and the label, where they are named."""
Find = Callable[[str], Path]
"""Returns the file of a name in a table."""


@dataclass(frozen=True)
class LabelledPicture:
    """One picture: where it stands, what it shows, and its pixels or the file that holds them.

    Attributes:
        where: as errors name it.
        target: what it is asked for: a label; of other sources its boxes, its mask or its captions.
        given: pixels, a file, or what a file holds.
        key: the sha256 of its bytes, by which equal pictures are known.
    """

    where: str
    target: Any
    given: Tensor | Path | bytes
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
        return read_pixels(self.given if isinstance(self.given, bytes) else bytes_of(self.given), self.where)


def read_pictures(
    source: str, skip_bad: int = 0, columns: Columns = (None, None), *, labelled: bool = True
) -> Iterator[LabelledPicture]:
    """Yield the pictures of a source.

    Args:
        source: a named set, one that is made here, an IDX file of pictures, a folder with one or with a folder for each
            label, or a table whose columns name a file (relative to the table) and a label. ``SOURCE[:7000]`` is its
            first pictures, ``SOURCE[7000:]`` the others.
        skip_bad: rows of a table that may be left out.
        columns: of a table, that of the file and that of the label, where they are named.
        labelled: whether each must have a label.

    Raises:
        DataError: it is none of these, or damaged.
    """
    name, start, stop = in_range(source)
    return islice(_read(name, skip_bad, columns, labelled), start, stop)


def found_at(source: str) -> Path:
    """Return the file or the folder of a source, that of a named set in the folder of these.

    Raises:
        DataError: there is none.
    """
    path = Path(source)
    if source in sets.SETS and not path.exists():
        return sets.present(data_folder(), source, sets.SETS[source].files[0].name).parent
    if not path.exists():
        raise DataError(f"{source}: no such file or folder", "check the path")
    return path


def _read(source: str, skip_bad: int, columns: Columns, labelled: bool) -> Iterator[LabelledPicture]:
    if generated.find(source) is not None:
        return _of_table(Path(source), skip_bad, columns, labelled)
    if (stacks := stacks_of(Path(source))) is not None:
        return _of_stacks(stacks, labelled)
    path = found_at(source)
    if path.is_dir():
        idx = sorted(each for each in path.iterdir() if "images" in each.name and "idx3" in each.name)
        if len(idx) > 1:
            names = ", ".join(each.name for each in idx)
            raise DataError(f"{source} holds several files of pictures: {names}", "name one of them")
        return _of_idx(idx[0], labelled) if idx else _of_folder(path, skip_bad, columns, labelled)
    if format_of(path) in TABLES:  # refuses by their names formats that no reader reads
        return _of_table(path, skip_bad, columns, labelled)
    return _of_idx(path, labelled)


def _of_idx(file: Path, labelled: bool) -> Iterator[LabelledPicture]:
    pictures = read_idx(file, 3)
    labels = read_idx(labels_beside(file), 1) if labelled else pictures[:, 0, 0] * 0
    if len(pictures) != len(labels):
        raise DataError(
            f"{file} has {len(pictures):,} pictures, and there are {len(labels):,} labels",
            "get both files again from their source",
        )
    for number, (pixels, label) in enumerate(zip(pictures, labels, strict=True)):
        key = hashlib.sha256(pixels.tobytes()).hexdigest()
        shown = str(label) if labelled else ""
        yield LabelledPicture(f"{file}:{number + 1}", shown, torch.from_numpy(pixels)[None], key)


def _of_stacks(stacks: Iterable[tuple[Path, Stack]], labelled: bool) -> Iterator[LabelledPicture]:
    for file, (pictures, labels) in stacks:
        for number, (pixels, label) in enumerate(zip(pictures, labels, strict=True), start=1):
            own = np.ascontiguousarray(pixels)
            key = hashlib.sha256(own.tobytes()).hexdigest()
            yield LabelledPicture(f"{file}:{number}", label if labelled else "", torch.from_numpy(own), key)


def _of_folder(folder: Path, skip_bad: int, columns: Columns, labelled: bool) -> Iterator[LabelledPicture]:
    if archives := archives_in(folder):
        for each in archives:
            yield from _of_table(each, skip_bad, columns, labelled)
        return
    if not labelled:
        found = _pictures_in(folder)
        if not found:
            raise DataError(f"{folder} holds no picture ({', '.join(ENDINGS)})", "name a folder that does")
        yield from (of_file(file, str(file), "") for file in found)
        return
    folders = sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith((".", "__")))
    by_label = {own.name: files for own in folders if (files := _pictures_in(own))}
    table, parts = table_in(folder), sorted((name for name in by_label if part_of(name)), key=part_of)
    if table.is_file() and len(parts) == len(by_label):
        yield from _of_table(table, skip_bad, columns, labelled)
        return
    if not by_label:
        raise _no_pictures(folder)
    if len(parts) == len(by_label):
        message = f"{folder} holds the parts of a data set ({', '.join(parts)}), and no folder for each label"
        raise DataError(message, f"name the parts: --train {folder / parts[0]}, and --val with another")
    if loose := [file for file in folder.iterdir() if file.suffix.lower() in ENDINGS and not file.name.startswith(".")]:
        message = f"{folder} holds folders with pictures, and pictures that are in none, as {loose[0].name}"
        raise DataError(message, "put each into the folder of its label, or give a table of files and labels")
    for label, files in by_label.items():
        within = sorted({file.relative_to(folder / label).parts[0] for file in files if file.parent != folder / label})
        if len(within) > 1:
            said = "%s: all in %s is labelled %r, also in its folders %s; where these are the labels, name it"
            logger.warning(said, folder, label, label, ", ".join(within[:3]))
    yield from (of_file(file, str(file), label) for label, files in by_label.items() for file in files)


def _no_pictures(folder: Path) -> DataError:
    """Return the error for a folder without pictures that are read, by what lies there instead."""
    for file in sorted(file for file in folder.rglob("*") if file.is_file()):
        format_of(file)  # refuses by their names formats that no reader reads
        if file.suffix.lower() in _OTHERS:
            return DataError(
                f"{file}: {file.suffix} files are not read", f"convert them: mogrify -format png *{file.suffix}"
            )
    table = next((each for end in TABLES if (each := folder.with_name(f"{folder.name}{end}")).is_file()), None)
    if table is not None:
        return DataError(f"{folder} holds no folder for each label", f"name the table: --train {table}")
    return DataError(
        f"{folder} holds no folder with pictures ({', '.join(ENDINGS)})",
        "make a folder for each label and put its pictures there, or give a table of files and labels",
    )


def _pictures_in(folder: Path) -> list[Path]:
    """Return the pictures of a folder however deep; what begins with a dot is another system's note on one."""
    files = sorted(folder.rglob("*"))
    return [file for file in files if file.suffix.lower() in ENDINGS and not file.name.startswith(".")]


def table_in(source: Path) -> Path:
    """Return the table ``metadata`` of a folder, where it has one; any other source as it is."""
    tables = (source / f"{METADATA}{suffix}" for suffix in TABLES)
    return next((table for table in tables if table.is_file()), source)


def _of_table(table: Path, skip_bad: int, asked: Columns, labelled: bool) -> Iterator[LabelledPicture]:
    wanted = tuple(name for name in asked if name)
    first = next((row for _, row in read_placed_rows(table, wanted if are_numbers(wanted) else ())), {})
    check_columns(str(table), first, wanted)
    named = asked[0] or next((name for name in FILES if name in first), None)
    label = (asked[1] or next((name for name in LABELS if name in first), None)) if labelled else named
    if any(name in first for name in _PIXELS):
        hint = "take the set as IDX files or .npz, or write each row as a .png into a folder of its label"
        raise DataError(f"{table}: the pixels are numbers in the table", hint)
    if named is None or label is None:
        raise DataError(
            f"{table}: no column is known to hold {'the file' if named is None else 'the label'} "
            f"among {', '.join(first)[:200] or 'none'}",
            f"name it: --data.{'picture' if named is None else 'label'} COLUMN (1, 2, ... without a line of names)",
        )
    columns, find = (named, label) if labelled else (named,), finder(table, first[named])

    def picture(where: str, row: object) -> LabelledPicture:
        file, target = (row.get(name) for name in (named, label))  # type: ignore[attr-defined]
        if not is_cell(file) or target in (None, ""):
            raise bad_record(where, f"it needs a file in {named} and a label in {label}")
        if labelled and isinstance(target, list | tuple | Mapping):
            raise bad_record(where, f"its {label} is {str(target)[:40]}, and a picture has one label here")
        return of_cell(file, find, where, str(target) if labelled else "")

    yield from kept(read_placed_rows(table, columns), picture, skip_bad)


def finder(table: Path, first: Any) -> Find:
    """Return what finds the files that a table names: beside it, or in the folder beside it that has the first of them.

    Kaggle's ``train.csv`` names files in ``train/``, often without their ending; of several folders the one that is
    called like the table goes before.
    """
    first = first.get("path") if isinstance(first, Mapping) else first
    folders = sorted(
        (each for each in table.parent.glob("*/")), key=lambda each: (not each.name.startswith(table.stem), each)
    )
    for ending in ("", *ENDINGS) if isinstance(first, str) and first and not is_address(first) else ():
        for folder in (table.parent, *folders):
            if (folder / f"{first}{ending}").is_file():
                return lambda name: folder / f"{name}{ending}"
    return lambda name: table.parent / name


def is_cell(value: Any) -> bool:
    """Whether a cell of a table can hold a picture: a name, or what the library `datasets` has in its place."""
    return (
        bool(value.get("bytes") or value.get("path"))
        if isinstance(value, Mapping)
        else bool(isinstance(value, str) and value)
    )


def of_cell(value: Any, find: Find, where: str, target: Any) -> LabelledPicture:
    """Return the picture of a cell of a table: its bytes, an address that holds it, or a file that ``find`` finds.

    Raises:
        DataError: there is no such file, or the address holds nothing or is another machine's.
    """
    if isinstance(value, Mapping):
        if content := value.get("bytes"):
            return LabelledPicture(where, target, content, hashlib.sha256(content).hexdigest())
        value = str(value["path"])
    if value.startswith(("http://", "https://")):
        raise bad_record(
            where, f"{value[:60]} is an address, and nothing is fetched: get its files first (img2dataset)"
        )
    if not is_address(value):
        return of_file(find(value), f"{where} ({value})", target)
    content = content_of(value, where)
    return LabelledPicture(where, target, content, hashlib.sha256(content).hexdigest())


def of_file(file: Path, where: str, target: Any) -> LabelledPicture:
    """Return the picture of a file, which is read for its key alone.

    Raises:
        DataError: it cannot be read.
    """
    return LabelledPicture(where, target, file, hashlib.sha256(bytes_of(file)).hexdigest())


def bytes_of(file: Path) -> bytes:
    """Return what a file holds.

    Raises:
        DataError: it cannot be read.
    """
    try:
        return file.read_bytes()
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}", "check the path") from error
