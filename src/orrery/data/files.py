"""Read files that may be compressed, and bytes that may not be text."""

import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast

from orrery.errors import DataError

Invalid = Literal["error", "replace"]

_OPEN: dict[str, Callable[[Path, str], Any]] = {".gz": gzip.open, ".xz": lzma.open}


@contextmanager
def open_binary(file: Path) -> Iterator[BinaryIO]:
    """Open a plain, .gz or .xz file for its content. Raises `DataError` where it is missing or cut off."""
    try:
        with cast(BinaryIO, _OPEN.get(file.suffix, open)(file, "rb")) as stream:
            yield stream
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{file}: damaged {file.suffix} file: {error}", "fetch or compress it again") from None
    except FileNotFoundError:
        raise DataError(f"{file}: no such file", "check the name") from None


def decode(content: bytes, where: str, invalid: Invalid, offset: int = 0) -> str:
    """Decode UTF-8 as it stands, byte order mark and line ends included.

    Raises `DataError` with the offset of the first bad byte, counted from the start of the file (``offset``
    is where ``content`` starts in it).
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        text = content.decode("utf-8", "replace")
        if invalid == "replace":
            return text
        bad = text.count("\N{REPLACEMENT CHARACTER}") - content.count("\N{REPLACEMENT CHARACTER}".encode())
        raise DataError(
            f"{where}: invalid UTF-8 at byte {offset + error.start}, {bad} of {len(content):,} bytes",
            f"{_advice(bad / len(content))}; `invalid: replace` puts U+FFFD in their place",
        ) from None


def _advice(share: float) -> str:
    return "few bytes are bad: mend them" if share < 0.001 else "it is perhaps not UTF-8: convert it"
