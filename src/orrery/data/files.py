"""Read files that may be compressed, lines that may not be text, records that may be bad."""

import bz2
import gzip
import logging
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from io import BufferedReader
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, TypeVar, cast

from orrery.data.codings import foreign_coding
from orrery.errors import DataError

logger = logging.getLogger(__name__)

Invalid = Literal["error", "replace"]
Row = TypeVar("Row")
Made = TypeVar("Made")
_TALLY: ContextVar[list[str] | None] = ContextVar("bad records", default=None)
NAMED = 3
"""Bad records that are told with their reasons; the others are counted."""

_OPEN: dict[str, Callable[[Path, str], Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
_MARK = b"\xef\xbb\xbf"
_CONVERT = "it is perhaps not UTF-8: convert it, as from Windows `iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW`"
HEAD = 4096
"""Bytes that tell how a file writes its letters."""


class Line(NamedTuple):
    """One line of a file as bytes, its end included; ``number`` counts from 1, ``offset`` in bytes from 0."""

    file: Path
    number: int
    offset: int
    content: bytes

    @property
    def where(self) -> str:
        """The place as errors name it."""
        return f"{self.file}:{self.number}"

    def text(self, invalid: Invalid) -> str:
        """Return the line without its end, which is LF or CRLF. Raises `DataError` for invalid UTF-8."""
        return decode(self.content.removesuffix(b"\n").removesuffix(b"\r"), self.where, invalid, self.offset)


class Faults:
    """The bad records of one file: the first ``allowed`` are logged and left out, the next one is raised."""

    def __init__(self, invalid: Invalid = "error", allowed: int = 0) -> None:
        self.invalid: Invalid = invalid
        self.allowed = allowed
        self.met = 0

    def meet(self, error: DataError) -> None:
        """Count a bad record. Raises ``error`` where no more are allowed."""
        self.met += 1
        if self.met > self.allowed:
            raise error
        tally = _TALLY.get()
        if tally is None:
            logger.warning("left out: %s", error.message)
        else:
            tally.append(error.message)


@contextmanager
def counted_faults() -> Iterator[list[str]]:
    """Gather what is said of bad records that are left out while this lasts, in the place of a warning for each."""
    met: list[str] = []
    token = _TALLY.set(met)
    try:
        yield met
    finally:
        _TALLY.reset(token)


def told_faults(met: Sequence[str]) -> list[str]:
    """Say how many records were left out, and why the first of them; nothing where none was."""
    if not met:
        return []
    more = f" and {len(met) - NAMED:,} more" if len(met) > NAMED else ""
    return [f"left out, {len(met):,} bad record{'s' * (len(met) > 1)}: {'; '.join(met[:NAMED])}{more}"]


def kept(rows: Iterable[tuple[str, Row]], make: Callable[[str, Row], Made], allowed: int) -> Iterator[Made]:
    """Yield what is made of rows, each with its place; the first ``allowed`` bad ones are logged and left out.

    Raises:
        DataError: one more is bad.
    """
    faults = Faults(allowed=allowed)
    for where, row in rows:
        try:
            made = make(where, row)
        except DataError as error:
            faults.meet(error)
            continue
        yield made


def bad_record(where: str, what: str) -> DataError:
    """Return the error for one bad line, row or sentence."""
    return DataError(f"{where}: {what}", "mend it, or allow a number of bad ones with `skip_bad=N`")


@contextmanager
def open_binary(file: Path) -> Iterator[BinaryIO]:
    """Open a plain, .gz, .xz or .bz2 file for its content. Raises `DataError` where it is missing or cut off."""
    try:
        with cast(BinaryIO, _OPEN.get(file.suffix.lower(), open)(file, "rb")) as stream:
            yield stream
    except (EOFError, lzma.LZMAError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{file}: damaged {file.suffix} file: {error}", "fetch or compress it again") from None
    except FileNotFoundError:
        raise DataError(f"{file}: no such file", "check the name") from None
    except IsADirectoryError:
        raise DataError(f"{file}: a folder, not a file", "name a file in it") from None
    except OSError as error:
        if error.errno is not None or file.suffix.lower() != ".bz2":
            raise
        raise DataError(f"{file}: damaged .bz2 file: {error}", "fetch or compress it again") from None


@contextmanager
def open_text(file: Path) -> Iterator[BinaryIO]:
    """Open a file as `open_binary` does. Raises `DataError` for UTF-16 and UTF-32, with the command that converts."""
    with open_binary(file) as stream:
        head = cast(BufferedReader, stream).peek(HEAD)[:HEAD]
        coding = foreign_coding(head)
        if coding:
            raise DataError(f"{file}: {coding}, not UTF-8", f"convert it: `iconv -f {coding} -t UTF-8 FILE > NEW`")
        yield stream


def read_lines(file: Path) -> Iterator[Line]:
    """Yield the lines of a file, one in memory at a time, without a byte order mark at its start.

    Only LF ends a line: U+2028, form feeds and lone CRs stay inside it, as in ``wc -l``. Raises `DataError`
    as `open_text` does.
    """
    offset = 0
    with open_text(file) as stream:
        for number, content in enumerate(stream, start=1):
            marked = len(_MARK) if number == 1 and content.startswith(_MARK) else 0
            yield Line(file, number, offset + marked, content[marked:])
            offset += len(content)


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
            f"{_advice(content, bad)}; `invalid=replace` puts U+FFFD in their place",
        ) from None


def _advice(content: bytes, bad: int) -> str:
    return "few bytes are bad: mend them" if bad < len(content) / 1000 else _CONVERT
