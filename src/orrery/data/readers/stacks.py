"""Labelled pictures in arrays: CIFAR's batches in either form, STL-10's bytes, and numpy's .npz in three forms."""

import pickle
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.data.files import decode, read_lines
from orrery.data.readers.idx import MOST
from orrery.errors import DataError

Stack = tuple[NDArray[np.uint8], Sequence[str]]
"""Pictures [N, channels, rows, columns], and the label of each."""
_BATCHES = {"train": "data_batch_*", "test": "test_batch*"}
_BATCH = re.compile(r"(data_batch_\d|test_batch)(\.bin)?")
_META = {"batches.meta": b"label_names", "meta": b"fine_label_names"}
"""The files beside CIFAR-10's and CIFAR-100's pickles, and what they call the names of the labels in."""
_TEXTS = {"batches.meta.txt": 1, "fine_label_names.txt": 2}
"""Those beside the binary files, and how many bytes of labels each picture has: CIFAR-100's second is the finer one."""
_SIDE = 32
_PARTS = ("train", "val", "test")
_NAMES = (("{}_images", "{}_labels"), ("x_{}", "y_{}"), ("X_{}", "y_{}"))
"""What the two arrays of a part are called by MedMNIST and by Keras."""
_PAIRED = re.compile(r"(?:.*-(train|test)-imgs\.npz|(train|test)_X\.bin)")
"""The pictures of KMNIST and of STL-10, whose labels are a file beside: -labels.npz, _y.bin."""
_STL_NAMES, _STL_SIDE = "class_names.txt", 96
_AGAIN = "get the file again from its source"


def stacks_of(source: Path) -> Iterator[tuple[Path, Stack]] | None:
    """Return the files that a source means with their pictures, or nothing where it is in none of these forms.

    ``FOLDER/train`` and ``FOLDER/test`` mean the batches of CIFAR-10 of that part, or KMNIST's and STL-10's two files,
    and ``FILE.npz/train`` the arrays.

    Raises:
        DataError: it holds several parts and none is named, or it is damaged.
    """
    if (pictures := _paired(source)) is not None:
        return iter([(pictures, _of_two(pictures))])
    archive = next((path for path in (source, source.parent) if path.suffix == ".npz" and path.is_file()), None)
    if archive is not None:
        part = "" if archive == source else source.name
        return iter([(source, _of_archive(archive, part))])
    folder = source if source.is_dir() else source.parent
    named = next((name for name in (*_META, *_TEXTS) if (folder / name).is_file()), None)
    if named is None or not (source == folder or source.name in _PARTS or _is_batch(source, folder)):
        return None
    if source == folder:
        raise DataError(
            f"{folder} holds the parts of CIFAR", f"name one: --train {folder / 'train'}, and --val with another"
        )
    files = [source] if source.is_file() else sorted(folder.glob(_BATCHES.get(source.name, source.name)))
    files = files or sorted(folder.glob(f"{source.name}.bin"))
    if not files:
        raise DataError(f"{source}: no batch of CIFAR of that name", f"look into {folder}")
    return ((file, _of_batch(file, folder / named)) for file in files)


def _is_batch(source: Path, folder: Path) -> bool:
    return bool(_BATCH.fullmatch(source.name)) or source.name in ("train.bin", "test.bin")


def _of_batch(file: Path, beside: Path) -> Stack:
    """Return the pictures of a batch, with the names of their labels from the file beside it."""
    names: Any
    pixels: Any
    if beside.name in _TEXTS:
        names = [text for line in read_lines(beside) if (text := line.text("error").strip())]
        wide, content = _TEXTS[beside.name], np.fromfile(file, np.uint8)
        if not len(content) or len(content) % (wide + 3 * _SIDE**2):
            raise DataError(f"{file}: {len(content):,} bytes are no pictures of CIFAR", _AGAIN)
        rows = content.reshape(-1, wide + 3 * _SIDE**2)
        numbers, pixels = rows[:, wide - 1].tolist(), rows[:, wide:]
    else:
        batch, names = _plain(file), _plain(beside).get(_META[beside.name])
        numbers, pixels = batch.get(b"fine_labels", batch.get(b"labels")), batch.get(b"data")
        names = [decode(each, str(beside), "error") if isinstance(each, bytes) else each for each in names or ()]
    whole = (
        isinstance(pixels, np.ndarray) and isinstance(numbers, list) and pixels.shape == (len(numbers), 3 * _SIDE**2)
    )
    if not whole or not all(type(each) is int and 0 <= each < len(names) for each in numbers):
        raise DataError(
            f"{file}: its labels and pictures do not fit together, or {beside.name} does not name them", _AGAIN
        )
    return pixels.reshape(-1, 3, _SIDE, _SIDE), [str(names[each]) for each in numbers]


class _Type:
    """Takes the place of the type of an array's numbers while a pickle is read."""

    def __init__(self, name: Any, *_: Any) -> None:
        self.name = name

    def __setstate__(self, state: Any) -> None:
        """Pass over the order of bytes: what is read has one each."""


class _Array:
    """Takes the place of an array of bytes while a pickle is read, so that nothing of numpy is called by it."""

    def __init__(self, *_: Any) -> None:
        self.found: NDArray[np.uint8] | None = None

    def __setstate__(self, state: Any) -> None:
        """Take the shape and the bytes."""
        _, shape, kind, by_columns, content = state
        if kind.name not in ("u1", b"u1") or by_columns or not isinstance(content, bytes):
            raise pickle.UnpicklingError("an array of something else than bytes")
        self.found = np.frombuffer(content, np.uint8).reshape(shape).copy()


class _Reader(pickle.Unpickler):
    """Reads numbers, texts, lists, mappings and arrays of bytes alone: it knows four names to call."""

    _KNOWN: Mapping[str, Any] = {"_reconstruct": _Array, "ndarray": _Array, "dtype": _Type, "encode": str.encode}

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a name of numpy's, and refuse any other."""
        if module.partition(".")[0] not in ("numpy", "_codecs") or name not in self._KNOWN:
            raise pickle.UnpicklingError(f"it wants to call {module}.{name}, which is code")
        return self._KNOWN[name]


def _plain(file: Path) -> dict[bytes, Any]:
    """Return the mapping that a pickle of CIFAR's holds, its keys as bytes; nothing in it is run.

    Raises:
        DataError: it holds something else, or would call something.
    """
    try:
        with file.open("rb") as stream:
            content = _Reader(stream, encoding="bytes").load()
        pairs = {key.encode() if isinstance(key, str) else key: value for key, value in content.items()}
    except Exception as error:  # a damaged pickle raises nearly anything
        raise DataError(f"{file} is no batch of CIFAR: {str(error)[:100]}", _AGAIN) from None
    return {key: value.found if isinstance(value, _Array) else value for key, value in pairs.items()}


def _paired(source: Path) -> Path | None:
    """Return the file of pictures whose labels are a file beside, or nothing for what means none.

    Raises:
        DataError: a folder holds the pictures of two parts.
    """
    folder = source if source.is_dir() else source.parent
    found = {path: part for path in sorted(folder.glob("*")) if (part := _PAIRED.fullmatch(path.name))}
    own = [path for path, part in found.items() if source in (path, folder, folder / (part[1] or part[2]))]
    if len(own) > 1:
        there = ", ".join(str(folder / (part[1] or part[2])) for part in found.values())
        raise DataError(f"{source} holds pictures in {', '.join(path.name for path in own)}", f"name one: {there}")
    return own[0] if own else None


def _of_two(file: Path) -> Stack:
    """Return the pictures of a file of KMNIST's or STL-10's with the labels of the one beside it."""
    beside = file.with_name(file.name.replace("-imgs.npz", "-labels.npz").replace("_X.bin", "_y.bin"))
    if not beside.is_file():
        raise DataError(f"{beside}, the labels of {file.name}, is missing", "get it from the source of the pictures")
    if file.suffix == ".npz":
        pixels, labels = (_arrays(path, lambda there: there[:1])[0] for path in (file, beside))
        return _pictures(file, pixels), _labels(beside, labels, len(pixels))
    content, numbers = np.fromfile(file, np.uint8), np.fromfile(beside, np.uint8)
    if not len(numbers) or len(content) != len(numbers) * 3 * _STL_SIDE**2:
        raise DataError(f"{file}: {len(content):,} bytes are no pictures for {len(numbers):,} labels", _AGAIN)
    listed = file.with_name(_STL_NAMES)
    names = [line.text("error").strip() for line in read_lines(listed)] if listed.is_file() else []
    # Its columns stand one after another, and its labels count from 1.
    pixels = content.reshape(-1, 3, _STL_SIDE, _STL_SIDE).swapaxes(2, 3)
    return pixels, [names[each - 1] if 0 < each <= len(names) else str(each) for each in numbers.tolist()]


def _of_archive(file: Path, part: str) -> Stack:
    """Return the pictures of a part of an .npz, or its only ones.

    Raises:
        DataError: it has no such part, several and none is named, or arrays that are no pictures with a label each.
    """

    def chosen(there: Sequence[str]) -> Sequence[str]:
        named = {p: (x.format(p), y.format(p)) for p in _PARTS for x, y in _NAMES if x.format(p) in there}
        named = named or {"": ("images", "labels")}
        if part not in named and (part or len(named) > 1):
            parts = ", ".join(f"{file / each}" for each in named)
            raise DataError(f"{file} holds the parts {', '.join(named)}", f"name one: {parts}")
        return named.get(part, next(iter(named.values())))

    pixels, labels = _arrays(file, chosen)
    return _pictures(file, pixels), _labels(file, labels, len(pixels))


def _arrays(file: Path, chosen: Callable[[Sequence[str]], Sequence[str]]) -> list[NDArray[Any]]:
    """Return the arrays of an .npz that are chosen among its names; no pickle is read.

    Raises:
        DataError: it is too large or damaged, or has no such array.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            size = sum(each.file_size for each in archive.infolist())
        if size > MOST:
            raise DataError(f"{file} has {size:,} bytes, and {MOST:,} are read", "write its pictures as .png files")
        with np.load(file, allow_pickle=False) as stored:
            return [stored[name] for name in chosen(stored.files)]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        hint = "its arrays are called train_images and train_labels, x_train and y_train, or images and labels"
        raise DataError(f"{file}: no pictures with labels: {str(error)[:80]}", hint) from None


def _pictures(file: Path, pixels: NDArray[Any]) -> NDArray[np.uint8]:
    pixels = pixels[..., None] if pixels.ndim == 3 else pixels
    if pixels.ndim != 4 or pixels.shape[-1] not in (1, 3) or pixels.dtype != np.uint8 or not pixels.size:
        message = f"{file}: an array of {pixels.dtype} in {list(pixels.shape)} holds no pictures"
        raise DataError(message, "pictures are bytes: [N, rows, columns], or [N, rows, columns, 3]")
    return pixels.transpose(0, 3, 1, 2)


def _labels(file: Path, labels: NDArray[Any], count: int) -> list[str]:
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.shape != (count,) or labels.dtype.kind not in "iuU":
        message = f"{file}: labels of {labels.dtype} in {list(labels.shape)} for {count:,} pictures"
        raise DataError(message, "a picture has one label, a whole number or a text")
    return [str(each) for each in labels.tolist()]
