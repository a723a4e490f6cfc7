"""Word vectors in the text and binary files of the C program, read with limits and written to be read elsewhere.

Both begin with one line: how many words, how many numbers each. Text: the word and its numbers on a line.
Binary: the word, one space, the numbers as little-endian float32, then, as most programs write it, a line end.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from orrery.errors import MachineError, ModelFileError
from orrery.models.word2vec.vectors import Vectors

VECTORS = "vectors.bin"
"""The file's name in a folder; a run has it in ``final``."""
LONGEST_WORD = 1_000
LONGEST_LINE = 1_000_000
LARGEST_WIDTH = 10_000
_NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?(inf|nan|infinity)", re.IGNORECASE)
HINT = "is it a word2vec file, whole, and of this kind (text or binary)?"


def write_text(vectors: Vectors, path: Path) -> None:
    """Write the text form; nine digits give every float32 back bit for bit."""
    with _whole_file(vectors, path) as file:
        for word, row in zip(vectors.words, vectors.matrix, strict=True):
            file.write(f"{word} {' '.join(f'{number:.9g}' for number in row)}\n".encode())


def write_binary(vectors: Vectors, path: Path) -> None:
    """Write the binary form."""
    with _whole_file(vectors, path) as file:
        for word, row in zip(vectors.words, vectors.matrix, strict=True):
            file.write(word.encode() + b" " + row.astype("<f4").tobytes() + b"\n")


def read_vectors(path: Path) -> Vectors:
    """Read a file of either form, or a folder with `VECTORS`: the row of the first word decides which form it is.

    Raises `ModelFileError`.
    """
    path = find_vectors(path) or path
    with _open(path) as file:
        _, width = _header(file, path, 2)
        row = file.readline(LONGEST_LINE).rstrip(b" \r\n").rsplit(b" ", width)[1:]
    return read_text(path) if len(row) == width and all(map(_NUMBER.fullmatch, row)) else read_binary(path)


def is_vectors(path: Path) -> bool:
    """Return whether a file begins as these do: a line of two whole numbers."""
    if not path.is_file():
        return False
    with _open(path) as file:
        parts = file.readline(100).split()
    return len(parts) == 2 and all(part.isdigit() for part in parts)


def find_vectors(path: Path) -> Path | None:
    """Return the file of word vectors that a path means: itself, or the one in a folder or run; or nothing."""
    if path.is_file():
        return path
    return next((file for file in (path / "final" / VECTORS, path / VECTORS) if file.is_file()), None)


def read_text(path: Path) -> Vectors:
    """Read the text form. Raises `ModelFileError` that names the line."""
    with _open(path) as file:
        count, width = _header(file, path, 2)
        words, matrix = [], np.empty((count, width), np.float32)
        for number in range(count):
            line = file.readline(LONGEST_LINE)
            parts = line.rstrip(b" \r\n").rsplit(b" ", width)
            if len(parts) != width + 1:
                raise _damaged(
                    path, f"line {number + 2} has {max(len(parts) - 1, 0)} numbers, the first line says {width}"
                )
            try:
                matrix[number] = [float(part) for part in parts[1:]]
            except ValueError:
                raise _damaged(path, f"line {number + 2} has something that is no number") from None
            words.append(_word(parts[0], path, f"line {number + 2}"))
        _finish(file, path)
    return _checked(words, matrix, path)


def read_binary(path: Path) -> Vectors:
    """Read the binary form. Raises `ModelFileError` that names the word's number."""
    with _open(path) as file:
        count, width = _header(file, path, 4)
        words, matrix = [], np.empty((count, width), np.float32)
        for number in range(count):
            words.append(_word(_until_space(file, path, number + 1), path, f"word {number + 1}"))
            content = file.read(4 * width)
            if len(content) != 4 * width:
                raise _damaged(path, f"it ends inside word {number + 1} of {count}")
            matrix[number] = np.frombuffer(content, "<f4")
        _finish(file, path)
    return _checked(words, matrix, path)


@contextmanager
def _whole_file(vectors: Vectors, path: Path) -> Iterator[BinaryIO]:
    """Give a file whose first line is written; who calls writes aside, as `outputs` does."""
    for word in vectors.words:
        if not word or len(word.encode()) > LONGEST_WORD or any(character in word for character in " \t\r\n"):
            raise ModelFileError(
                f"the word {word[:50]!r} cannot stand in a word2vec file",
                f"a word has 1 to {LONGEST_WORD:,} bytes and no white space",
            )
    try:
        with path.open("wb") as file:
            file.write(f"{len(vectors.words)} {vectors.matrix.shape[1]}\n".encode())
            yield file
    except OSError as error:
        raise MachineError(f"{path}: {error.strerror or error}", "check the folder, its rights and the disk") from None


def _open(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise ModelFileError(f"{path}: {error.strerror or error}", "give the path of a word2vec file") from None


def _header(file: BinaryIO, path: Path, least: int) -> tuple[int, int]:
    """Return count and width, believed only as far as the file's own size allows ``least`` bytes a number."""
    parts = file.readline(100).split()
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        raise _damaged(path, "the first line is not two whole numbers")
    count, width = int(parts[0]), int(parts[1])
    size = path.stat().st_size
    if not 1 <= width <= LARGEST_WIDTH or count < 1 or count * width * least > size:
        raise _damaged(
            path, f"the first line promises {count:,} words of {width:,} numbers, the file has {size:,} bytes"
        )
    return count, width


def _until_space(file: BinaryIO, path: Path, number: int) -> bytes:
    """Return a word up to its space, without the line end some programs write after each row."""
    word = bytearray()
    while (byte := file.read(1)) != b" ":
        if not byte or len(word) > LONGEST_WORD:
            raise _damaged(path, f"word {number} has no end within {LONGEST_WORD:,} bytes")
        word += byte
    return bytes(word).lstrip(b"\n")


def _word(content: bytes, path: Path, where: str) -> str:
    try:
        word = content.decode()
    except UnicodeDecodeError:
        raise _damaged(path, f"{where} is not UTF-8") from None
    if not word or len(content) > LONGEST_WORD:
        raise _damaged(path, f"{where}: a word is 1 to {LONGEST_WORD:,} bytes long")
    return word


def _finish(file: BinaryIO, path: Path) -> None:
    if file.read(100).strip():
        raise _damaged(path, "it goes on after its last word")


def _checked(words: list[str], matrix: NDArray[np.float32], path: Path) -> Vectors:
    for number in _repeated(words):
        raise _damaged(path, f"word {number + 1}, {words[number]!r}, was there before")
    if not np.isfinite(matrix).all():
        raise _damaged(path, f"the vector of {words[int(np.argmin(np.isfinite(matrix).all(1)))]!r} is not finite")
    return Vectors(words, matrix)


def _repeated(words: list[str]) -> Iterator[int]:
    seen: set[str] = set()
    for number, word in enumerate(words):
        if word in seen:
            yield number
        seen.add(word)


def _damaged(path: Path, what: str) -> ModelFileError:
    return ModelFileError(f"{path}: {what}", HINT)
