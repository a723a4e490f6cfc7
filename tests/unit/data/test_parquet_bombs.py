"""Parquet files of a few kilobytes that become gigabytes are refused by name within seconds; honest ones are read."""

import sys
from pathlib import Path

import pytest

import programs
from orrery.data.corpora import read_rows
from orrery.data.readers.parquet_bounds import BYTES, ROWS
from orrery.errors import DataError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

LONG, ROW = 10 << 20, 1300
PACKED = {"compression": "zstd", "dictionary_pagesize_limit": 1 << 30, "data_page_size": 1 << 30}


def coded(value, rows=ROW, kind=None):
    """A column in which one value stands in every row."""
    values = pa.array([value], kind)
    return pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), values)


def within_lists(values, of=1):
    return pa.ListArray.from_arrays(pa.array(range(0, len(values) + 1, of), pa.int32()), values)


def repeated(value, rows, kind):
    return pa.array([value], kind).take(pa.array([0] * rows, pa.int32()))


TEXT = "a" * LONG
BOMBS = {
    "text": (lambda: {"a": coded(TEXT)}, {"store_schema": False}),
    "text that stays numbers": (lambda: {"a": coded(TEXT)}, {}),
    "large text": (lambda: {"a": coded(TEXT, kind=pa.large_string())}, {"store_schema": False}),
    "bytes": (lambda: {"a": coded(TEXT.encode())}, {"store_schema": False}),
    "gzip": (lambda: {"a": coded(TEXT)}, {"store_schema": False, "compression": "gzip"}),
    "brotli": (lambda: {"a": coded(TEXT)}, {"store_schema": False, "compression": "brotli"}),
    "snappy": (lambda: {"a": coded(TEXT)}, {"store_schema": False, "compression": "snappy"}),
    "in groups": (lambda: {"a": coded(TEXT)}, {"store_schema": False, "row_group_size": 100}),
    "behind short ones": (
        lambda: {"a": pa.DictionaryArray.from_arrays(pa.array([0] * 2000 + [1] * ROW, pa.int32()), ["b", TEXT])},
        {"store_schema": False},
    ),
    "in many columns": (lambda: {f"c{n}": coded("a" * (100 << 10), 2000) for n in range(60)}, {"store_schema": False}),
    "lists": (lambda: {"a": within_lists(coded(TEXT))}, {"store_schema": False}),
    "one list": (lambda: {"a": within_lists(coded(TEXT), ROW)}, {"store_schema": False}),
    "lists of lists": (lambda: {"a": within_lists(within_lists(coded(TEXT), 10))}, {"store_schema": False}),
    "structs": (lambda: {"a": pa.StructArray.from_arrays([coded(TEXT)], ["b"])}, {"store_schema": False}),
    "maps": (
        lambda: {"a": pa.MapArray.from_arrays(pa.array(range(ROW + 1), pa.int32()), coded("k"), coded(TEXT))}, {}),
    "fixed width": (lambda: {"a": pa.array([b"a" * (5 << 20)] * 100, pa.binary(5 << 20))}, {}),
    "one huge text": (lambda: {"a": ["a" * (400 << 20)]}, {"use_dictionary": False}),
    "rows": (lambda: {"a": coded("b", 20_000_000)}, {}),
    "numbers": (lambda: {"a": repeated(1, 20_000_000, pa.int64())}, {}),
    "nothing": (lambda: {"a": pa.nulls(40_000_000, pa.string())}, {}),
    "a long list": (lambda: {"a": within_lists(repeated(1, 20_000_000, pa.int8()), 20_000_000)}, {}),
}  # fmt: skip
READ = """
import resource, sys, time
from pathlib import Path
from orrery.data.corpora import read_rows
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for name in sys.argv[1:]:
    began = time.perf_counter()
    try:
        for row in read_rows(Path(name)): pass
        print("read")
    except Exception as error:
        print(type(error).__name__, f"{time.perf_counter() - began:.3f}", error)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.fixture(scope="module")
def bombs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bombs")
    for name, (columns, options) in BOMBS.items():
        pq.write_table(pa.table(columns()), folder / f"{name}.parquet", **{**PACKED, **options})
    return folder


@pytest.mark.slow
def test_a_file_that_becomes_gigabytes_is_refused_within_seconds_and_a_gigabyte(bombs: Path) -> None:
    files = [bombs / f"{name}.parquet" for name in BOMBS]
    assert all(file.stat().st_size < 1 << 20 for file in files)
    said = programs.run([sys.executable, "-c", READ, *map(str, files)], capture_output=True, text=True)
    *told, peak = said.stdout.splitlines()
    assert len(told) == len(BOMBS), said
    for name, line in zip(BOMBS, told, strict=True):
        kind, seconds, *message = line.split(" ")
        assert kind == "DataError", (name, line)
        assert float(seconds) < 5, name
        assert "are read" in " ".join(message), line
        assert f"{name}.parquet" in line
    assert int(peak) < 1 << 20  # kilobytes


@pytest.mark.parametrize("name", ["text", "lists", "rows"])
def test_a_few_of_them_are_refused(name: str, tmp_path: Path) -> None:
    columns, options = BOMBS[name]
    pq.write_table(pa.table(columns()), tmp_path / "a.parquet", **{**PACKED, **options})
    with pytest.raises(DataError, match=r"a\.parquet: [\d,]+ bytes hold .*; at most [\d,]+ are read"):
        list(read_rows(tmp_path / "a.parquet"))


def test_other_columns_are_not_counted(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": coded(TEXT, 100), "b": list(range(100))}), tmp_path / "a.parquet", **PACKED)
    assert list(read_rows(tmp_path / "a.parquet", ["b"]))[-1] == {"b": 99}


def test_what_repeats_honestly_is_read_as_it_was_written(tmp_path: Path) -> None:
    """A prompt of the system in every row, labels, lists of words, within the bounds of a small file."""
    rows = 3000
    columns = {
        "system": ["You are an assistant. " * 100] * rows,
        "label": ["yes", "no", None] * (rows // 3),
        "words": [["a", "b" * (n % 7), None] for n in range(rows)],
        "turns": [[{"role": "user", "content": f"question {n % 5}"}, None] for n in range(rows)],
        "number": [n % 3 for n in range(rows)],
    }
    for options in ({}, {"row_group_size": 700}, {"store_schema": False}, {"use_dictionary": False}):
        pq.write_table(pa.table(columns), tmp_path / "a.parquet", compression="zstd", **options)
        read = list(read_rows(tmp_path / "a.parquet"))
        assert read == [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    assert (tmp_path / "a.parquet").stat().st_size < BYTES
    assert rows < ROWS
