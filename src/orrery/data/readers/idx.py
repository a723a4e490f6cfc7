"""IDX files, in which MNIST comes: a head that says type and shape, and the numbers behind it (LeCun et al. 1998)."""

import math
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.data.files import open_binary
from orrery.errors import DataError

BYTES = 0x08
"""The code of unsigned bytes, which pictures and their labels have."""
MOST = 1 << 31
"""Numbers in a file at most: a head of a few bytes may claim more than any memory holds."""


def read_idx(file: Path, axes: int) -> NDArray[np.uint8]:
    """Return the numbers of a file, plain or compressed.

    Args:
        file: it holds unsigned bytes.
        axes: as many as it must have: 1 for labels, 3 for pictures.

    Raises:
        DataError: it is missing, no IDX file, of another type or shape, or its length is not what its head says.
    """
    with open_binary(file) as stream:
        head = stream.read(4)
        if len(head) < 4 or head[:2] != b"\0\0":
            raise DataError(
                f"{file} is no IDX file",
                "pictures are read from folders, IDX, .npz, .tar, and tables: .csv, .tsv, .jsonl, .parquet",
            )
        if (head[2], head[3]) != (BYTES, axes):
            raise DataError(
                f"{file} holds the type {head[2]:#x} in {head[3]} axes; wanted are bytes in {axes}",
                "pictures have three axes, labels one: are the two files exchanged?",
            )
        sides = stream.read(4 * axes)
        shape = struct.unpack(f">{axes}I", sides) if len(sides) == 4 * axes else (0,)
        size = math.prod(shape)
        if not 0 < size <= MOST:
            raise DataError(f"{file} says that its shape is {list(shape)}", "get the file again from its source")
        content: Any = stream.read(size + 1)
    if len(content) != size:
        more = "more" if len(content) > size else f"{len(content):,}"
        raise DataError(f"{file}: its head says {size:,} numbers, it has {more}", "get the file again from its source")
    return np.frombuffer(content, np.uint8).reshape(shape).copy()


def labels_beside(pictures: Path) -> Path:
    """Return the file with the labels of a file of pictures, by MNIST's names.

    Raises:
        DataError: the name says nothing of the other's.
    """
    name = pictures.name
    if "images" not in name or "idx3" not in name:
        raise DataError(
            f"{pictures}: no file of labels is known for it",
            "call the two as MNIST does: train-images-idx3-ubyte and train-labels-idx1-ubyte, also with .gz",
        )
    return pictures.with_name(name.replace("images", "labels").replace("idx3", "idx1"))
