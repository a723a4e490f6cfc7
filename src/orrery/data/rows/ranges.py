"""Some rows of a source by their numbers: ``SOURCE[:7000]`` and ``SOURCE[7000:]``. This imports little."""

import re
from pathlib import Path

IMAGES = ("images", "img_dir", "leftImg8bit")
"""Folders of pictures beside those of labels or masks: as ADE20k and YOLO have them, MMSegmentation, and Cityscapes."""
PARTS = ("train", "training", "val", "valid", "validation", "dev", "test", "testing")
"""Folders of a data set's parts, which are no labels; COCO writes a year behind them."""
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
    found = (path.parent / name / path.name for name in IMAGES if (path.parent / name / path.name).is_dir())
    return None if path.exists() else next(found, None)


def is_listed_part(source: str) -> bool:
    """Whether ``ROOT/PART`` is no path but a part: one that Pascal VOC lists in ``ROOT/ImageSets/KIND/PART.txt``.

    Or one of arrays: of CIFAR-10's batches in ``ROOT``, of KMNIST's or STL-10's files, or of ``ROOT``, an .npz file.
    """
    path = Path(source)
    arrays = path.parent.suffix == ".npz" or any(
        file
        for end in ("batches.meta*", f"*-{path.name}-imgs.npz", f"{path.name}_X.bin")
        for file in path.parent.glob(end)
    )
    return not path.exists() and (arrays or any((path.parent / "ImageSets").glob(f"*/{path.name}.txt")))


def part_of(name: str) -> int:
    """Return the place of a part among those that data sets have, from 1, or 0 for any other name."""
    stem = name.lower().rstrip("0123456789")
    return PARTS.index(stem) + 1 if stem in PARTS else 0


def parts_in(folder: Path) -> list[str]:
    """Return the parts whose folders lie in one, those to learn from first; nothing where there is but one."""
    names = sorted((each.name for each in folder.iterdir() if each.is_dir() and part_of(each.name)), key=part_of)
    return names if len(names) > 1 else []
