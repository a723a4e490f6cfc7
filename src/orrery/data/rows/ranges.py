"""Some rows of a source by their numbers: ``SOURCE[:7000]`` and ``SOURCE[7000:]``. This imports little."""

import re
from pathlib import Path

_RANGE = re.compile(r"(?P<source>.+)\[(?P<start>\d*):(?P<stop>\d*)\]", re.DOTALL)


def in_range(source: str) -> tuple[str, int | None, int | None]:
    """Return the name of a source, and the range of its rows that is meant; a file of the whole name goes before."""
    found = _RANGE.fullmatch(source)
    if found is None or Path(source).exists():
        return source, None, None
    start, stop = (int(found[end]) if found[end] else None for end in ("start", "stop"))
    return found["source"], start, stop


def images_of_part(source: str) -> Path | None:
    """Return the folder ``ROOT/images/PART`` that ``ROOT/PART`` means where there is no such path, or nothing."""
    path = Path(source)
    images = path.parent / "images" / path.name
    return images if not path.exists() and images.is_dir() else None


def is_listed_part(source: str) -> bool:
    """Whether ``ROOT/PART`` is no path but a part: one that Pascal VOC lists in ``ROOT/ImageSets/KIND/PART.txt``.

    Or one of arrays: of CIFAR-10's batches in ``ROOT``, or of ``ROOT``, an .npz file.
    """
    path = Path(source)
    arrays = path.parent.suffix == ".npz" or any(path.parent.glob("batches.meta*"))
    return not path.exists() and (arrays or any((path.parent / "ImageSets").glob(f"*/{path.name}.txt")))
