"""Archives of WebDataset: files of one name but for their ending are a sample, which becomes a row of a table."""

import json
import logging
import tarfile
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

from orrery.data.files import Faults, bad_record, decode, open_binary
from orrery.data.pictures.endings import ENDINGS
from orrery.data.readers.columns import check_columns
from orrery.errors import DataError

IMAGE, LABEL, CAPTION = "image", "label", "caption"
"""The columns of a sample's picture, of its .cls and of its .txt; those of its .json have their names in it."""
LARGEST = 1 << 28
"""Bytes of one file in an archive."""
_UNPACK = "unpack it: `tar xf FILE`"
logger = logging.getLogger(__name__)


class _Member(NamedTuple):
    """A file of an archive: the name up to the first dot behind its folder, the ending behind that, and the content."""

    sample: str
    ending: str
    content: bytes


def read_samples(file: Path, wanted: tuple[str, ...], faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number from 1, row) of an archive of pictures with what belongs to them, in its order.

    Files of other endings are passed over, and told of once. A sample whose .json is none, or without a wanted column,
    is a fault.

    Raises:
        DataError: it is damaged, or its first sample has no picture.
    """
    with closing(_members(file)) as everything:  # an error here closes the file at once
        for number, (_, members) in enumerate(groupby(everything, lambda one: one.sample), start=1):
            own = list(members)
            if number == 1 and not any(_is_picture(one.ending) for one in own):
                raise DataError(
                    f"{file}: an archive whose first files, {own[0].sample}, are no sample of pictures", _UNPACK
                )
            try:
                row = _row(own, file, f"{file}:{number}", faults)
                check_columns(f"{file}:{number}", row, wanted)
            except DataError as error:
                faults.meet(error)
                continue
            yield number, row


def _members(file: Path) -> Generator[_Member, None, None]:
    try:
        with open_binary(file) as stream, tarfile.open(fileobj=stream, mode="r:") as archive:
            for member in archive:
                folder, _, name = member.name.rpartition("/")
                stem, _, ending = name.partition(".")
                if not member.isreg() or not stem:
                    continue
                if member.size > LARGEST:
                    raise DataError(f"{file}: {member.name[:80]} has {member.size:,} bytes", _UNPACK)
                inner = archive.extractfile(member)
                yield _Member(f"{folder}/{stem}", ending.lower(), b"" if inner is None else inner.read())
            # The library takes a header that is cut off or damaged for the end, which is two blocks of zeros.
            if stream.read(tarfile.BLOCKSIZE) != tarfile.NUL * tarfile.BLOCKSIZE:
                raise tarfile.ReadError("it has no end")
    except (tarfile.TarError, EOFError, ValueError, OverflowError) as error:
        raise DataError(f"{file}: no archive, or a damaged one: {str(error)[:80]}", "fetch it again") from None


def _row(members: Iterable[_Member], file: Path, where: str, faults: Faults) -> dict[str, Any]:
    row: dict[str, Any] = {}
    described: dict[str, Any] = {}
    for one in members:
        if _is_picture(one.ending):
            row[one.ending if IMAGE in row else IMAGE] = {"bytes": one.content, "path": f"{one.sample}.{one.ending}"}
        elif one.ending in ("cls", "txt"):
            row[LABEL if one.ending == "cls" else CAPTION] = decode(one.content, where, faults.invalid).strip()
        elif one.ending == "json":
            described = _object(one.content, where)
        else:
            _tell(file, one.ending)
    return {**described, **row}


def _object(content: bytes, where: str) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise bad_record(where, f"its .json is none: {error}") from None
    if not isinstance(found, dict):
        raise bad_record(where, "its .json is no object")
    return found


def _is_picture(ending: str) -> bool:
    return ending.endswith(tuple(end[1:] for end in ENDINGS))


@cache
def _tell(file: Path, ending: str) -> None:
    """Say once of an archive that files of an ending are not read."""
    logger.warning("%s: the .%s of its samples is not read", file, ending[:40])
