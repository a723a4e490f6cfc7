"""Parquet: columns on disk, read a thousand rows at a time through pyarrow."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from orrery.data.files import Faults, Invalid, decode, open_binary
from orrery.data.readers.class_labels import Naming, namings
from orrery.data.readers.columns import check_columns, check_names
from orrery.data.readers.parquet_bounds import Bounds, value_bytes
from orrery.errors import DataError, MachineError
from orrery.settings import install

ROWS_AT_ONCE = 1024
BYTES_AT_ONCE = 1 << 20
"""Of a column chunk. Left to itself the library reads chunks whole, and one may be as large as the file."""


def read_rows(file: Path, wanted: tuple[str, ...], faults: Faults) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (row number from 1, row) with the wanted columns, or all; others are not even read.

    A value that Python cannot hold, or that is not UTF-8, makes its row a fault. Raises `MachineError` without
    pyarrow, `DataError` for a damaged file or a missing column.
    """
    arrow = library()
    with open_binary(file) as stream:
        number = 0
        for names, columns, classes in _batches(arrow, file, stream, wanted):
            for values in zip(*columns, strict=True):
                number += 1
                where = f"{file}:{number}"
                try:
                    row = _row(names, values, where, faults)
                    row |= {name: classes[name](row[name], where) for name in classes if name in row}
                except DataError as error:
                    faults.meet(error)
                    continue
                yield number, row


def library() -> Any:
    """Return pyarrow. Raises `MachineError` where it is not installed."""
    try:
        importlib.import_module("pyarrow.compute")
        importlib.import_module("pyarrow.parquet")
        return importlib.import_module("pyarrow")
    except ImportError:
        hint = f"{install('data')}, or pip install pyarrow"
        raise MachineError("Parquet needs the package pyarrow, which is not installed", hint) from None


def _batches(
    arrow: Any, file: Path, stream: Any, wanted: tuple[str, ...]
) -> Iterator[tuple[list[str], list[Any], dict[str, Naming]]]:
    """Yield (names, lists of values, what names classes).

    Raises `DataError` where the library cannot go on or there is too much.
    """
    how = {"buffer_size": BYTES_AT_ONCE, "pre_buffer": False}
    try:
        plain = arrow.parquet.ParquetFile(stream, **how)
        names, types = plain.schema_arrow.names, plain.schema_arrow.types
        check_columns(str(file), names, wanted)
        check_names(str(file), names, wanted)
        classes = namings(plain.schema_arrow.metadata)
        bounds = Bounds(file, plain.metadata, wanted)
        coded = arrow.parquet.ParquetFile(stream, read_dictionary=bounds.paths, **how)
        kinds = dict(zip(names, types, strict=True))
        for group in range(plain.metadata.num_row_groups):
            rows, lists = bounds.plan(arrow, coded, group, ROWS_AT_ONCE)
            table = coded if lists else plain
            for batch in table.iter_batches(rows, row_groups=[group], columns=list(wanted) or None):
                bounds.count(sum(value_bytes(arrow, column) for column in batch.columns))
                columns = zip(batch.schema.names, batch.columns, strict=True)
                yield batch.schema.names, [_values(arrow, column, kinds[name]) for name, column in columns], classes
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{file}: damaged, or not Parquet: {reason}", "fetch or write it again") from None


def _values(arrow: Any, column: Any, kind: Any) -> list[Any]:
    """Return the values of a column of a type; texts as bytes, for nobody has checked that they are UTF-8.

    Where the column as a whole does not become Python's values, they are given as `HeldValue`.
    """
    if arrow.types.is_dictionary(column.type):
        several = _values(arrow, column.dictionary, column.type.value_type)
        return [None if number is None else several[number] for number in column.indices.to_pylist()]
    try:
        whole = column if column.type == kind else column.cast(kind)
        if arrow.types.is_string(whole.type) or arrow.types.is_large_string(whole.type):
            return [
                None if value is None else DeclaredText(value) for value in whole.cast(arrow.large_binary()).to_pylist()
            ]
        # Of these the library makes pandas' own values where pandas is installed: a file must not mean two things.
        if NANOSECONDS not in str(whole.type):
            return list(whole.to_pylist())
        return [HeldValue(arrow, value) for value in whole]
    except (ValueError, ArithmeticError, LookupError, arrow.ArrowException):
        return [HeldValue(arrow, value) for value in column]


NANOSECONDS = "[ns"
"""In the name of a type of moments or durations that are counted in nanoseconds, of which Python has no values."""


class DeclaredText(bytes):
    """Bytes that the file declares to be a text."""


class HeldValue(NamedTuple):
    """A value as the library holds it, for which Python may have no place: a nanosecond, a year beyond 9999."""

    arrow: Any
    scalar: Any


def _row(names: list[str], values: tuple[Any, ...], where: str, faults: Faults) -> dict[str, Any]:
    return {
        name: _value(value, name, where, faults.invalid) if isinstance(value, DeclaredText | HeldValue) else value
        for name, value in zip(names, values, strict=True)
    }


def _value(value: DeclaredText | HeldValue, name: str, where: str, invalid: Invalid) -> Any:
    if isinstance(value, DeclaredText):
        return decode(bytes(value), where, invalid)
    arrow, scalar = value
    try:
        return _opened(arrow, scalar, f"{where}: column {name!r}", invalid)
    except (ValueError, ArithmeticError, LookupError, arrow.ArrowException):
        what = f"column {name!r} ({scalar.type}) has a value that cannot be read"
        raise DataError(f"{where}: {what}", "ask for the columns you need, or allow a number of bad rows") from None


def _opened(arrow: Any, scalar: Any, where: str, invalid: Invalid) -> Any:
    """Return one value, and of a list, map or struct every value in it."""
    if not scalar.is_valid:
        return None
    if isinstance(scalar, arrow.DictionaryScalar):
        return _opened(arrow, scalar.value, where, invalid)
    if isinstance(scalar, arrow.StringScalar | arrow.LargeStringScalar | arrow.StringViewScalar):
        return decode(scalar.as_buffer().to_pybytes(), where, invalid)
    if isinstance(scalar, arrow.MapScalar):
        return [tuple(_opened(arrow, part, where, invalid) for part in pair.values()) for pair in scalar.values]
    if isinstance(scalar, arrow.ListScalar | arrow.LargeListScalar | arrow.FixedSizeListScalar):
        return [_opened(arrow, part, where, invalid) for part in scalar.values]
    if isinstance(scalar, arrow.StructScalar):
        return {name: _opened(arrow, part, where, invalid) for name, part in scalar.items()}
    if NANOSECONDS in str(scalar.type):
        microseconds = {"time64": arrow.time64, "duration": arrow.duration, "timestamp": arrow.timestamp}
        zone = {"tz": scalar.type.tz} if arrow.types.is_timestamp(scalar.type) else {}
        return scalar.cast(microseconds[str(scalar.type).partition("[")[0]]("us", **zone)).as_py()
    return scalar.as_py()
