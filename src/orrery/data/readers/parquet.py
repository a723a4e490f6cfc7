"""Parquet: columns on disk, read a thousand rows at a time through pyarrow."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orrery.data.files import Faults, decode, open_binary
from orrery.data.readers.columns import check_columns
from orrery.errors import DataError, MachineError

ROWS_AT_ONCE = 1024
BYTES_AT_ONCE = 1 << 20
"""Of a column chunk. Left to itself the library reads chunks whole, and one may be as large as the file."""


def read_rows(file: Path, wanted: tuple[str, ...], faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (row number from 1, row) with the wanted columns, or all; others are not even read.

    Raises `MachineError` without pyarrow, `DataError` for a damaged file or a missing column.
    """
    arrow = library()
    with open_binary(file) as stream:
        number = 0
        for names, columns in _batches(arrow, file, stream, wanted):
            for values in zip(*columns, strict=True):
                number += 1
                try:
                    row = _row(names, values, f"{file}:{number}", faults)
                except DataError as error:
                    faults.meet(error)
                    continue
                yield number, row


def library() -> Any:
    """Return pyarrow. Raises `MachineError` where it is not installed."""
    try:
        importlib.import_module("pyarrow.parquet")
        return importlib.import_module("pyarrow")
    except ImportError:
        hint = "pip install 'orrery[data]', or pip install pyarrow"
        raise MachineError("Parquet needs the package pyarrow, which is not installed", hint) from None


def _batches(arrow: Any, file: Path, stream: Any, wanted: tuple[str, ...]) -> Iterator[tuple[list[str], list[Any]]]:
    """Yield (names, lists of values). Raises `DataError` where the library cannot go on."""
    try:
        with arrow.parquet.ParquetFile(stream, buffer_size=BYTES_AT_ONCE, pre_buffer=False) as table:
            check_columns(str(file), table.schema_arrow.names, wanted)
            for batch in table.iter_batches(ROWS_AT_ONCE, columns=list(wanted) or None):
                yield batch.schema.names, [_values(arrow, column) for column in batch.columns]
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{file}: damaged, or not Parquet: {reason}", "fetch or write it again") from None


def _values(arrow: Any, column: Any) -> list[Any]:
    """Return the values of a column; texts as bytes, for nobody has checked that they are UTF-8."""
    if arrow.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if arrow.types.is_string(column.type) or arrow.types.is_large_string(column.type):
        column = column.cast(arrow.large_binary())
        return [None if value is None else Text(value) for value in column.to_pylist()]
    return list(column.to_pylist())


class Text(bytes):
    """Bytes that the file declares to be a text."""


def _row(names: list[str], values: tuple[Any, ...], where: str, faults: Faults) -> dict[str, Any]:
    return {
        name: decode(bytes(value), where, faults.invalid) if isinstance(value, Text) else value
        for name, value in zip(names, values, strict=True)
    }
