"""Parquet files of a few kilobytes that become gigabytes are refused by name within seconds; honest ones are read."""

import shutil
from pathlib import Path

import pytest

from bombs import refusals
from orrery.data.corpora import read_rows
from orrery.data.readers.parquet_bounds import BYTES, ROWS
from orrery.data.readers.parquet_pages import unpacked_bytes
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


def varint(number, size=None):
    """Return a whole number as Thrift's compact protocol has it, in as many bytes as another took."""
    groups = [*((number >> 7 * n) & 0x7F for n in range(max(1, -(-number.bit_length() // 7))))]
    groups += [0] * ((size or 0) - len(groups))
    return bytes([*(part | 0x80 for part in groups[:-1]), groups[-1]])


def lied(file: Path) -> None:
    """Let the end of a file say that nothing in it unpacks to more than 100 bytes."""
    metadata, content = pq.read_metadata(file), bytearray(file.read_bytes())
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    end = bytes(content[start:-8])
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    sizes = [group.total_byte_size for group in groups]
    sizes += [g.column(n).total_uncompressed_size for g in groups for n in range(metadata.num_columns)]
    for size in {size for size in sizes if size > 10_000}:
        old = varint(2 * size)
        assert old in end
        end = end.replace(old, varint(200, len(old)))
    content[start:-8] = end
    file.write_bytes(content)
    assert all(pq.read_metadata(file).row_group(n).total_byte_size <= 10_000 for n in range(len(groups)))


@pytest.fixture(scope="module")
def bombs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bombs")
    for name, (columns, options) in BOMBS.items():
        pq.write_table(pa.table(columns()), folder / f"{name}.parquet", **{**PACKED, **options})
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("honest", [True, False])
def test_a_file_that_becomes_gigabytes_is_refused_within_seconds_and_a_gigabyte(
    honest: bool, bombs: Path, tmp_path: Path
) -> None:
    """The end of a file may say that it becomes nothing: one page of 900 MB took 3.6 GB."""
    files = [bombs / f"{name}.parquet" for name in BOMBS]
    if not honest:
        files = [Path(shutil.copy(file, tmp_path)) for file in files]
        for file in files:
            lied(file)
    assert all(file.stat().st_size < 1 << 20 for file in files)
    refused = refusals("from orrery.data.corpora import read_rows", "[0 for row in read_rows(path)]", files)
    for name, (kind, message) in zip(BOMBS, refused, strict=True):
        assert kind == "DataError", (name, message)
        assert "are read" in message
        assert f"{name}.parquet" in message


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


@pytest.mark.parametrize("rows", [1, 3000])
@pytest.mark.parametrize("how", [
    {}, {"compression": "none"}, {"compression": "zstd"}, {"compression": "gzip"}, {"data_page_version": "2.0"},
    {"write_statistics": False}, {"use_dictionary": False}, {"row_group_size": 700}, {"data_page_size": 100},
    {"write_page_index": True}, {"write_page_checksum": True},
], ids=str)  # fmt: skip
def test_pages_say_what_an_honest_end_says(how: dict, rows: int, tmp_path: Path) -> None:
    columns = {
        "text": [f"text {n % 50} " * (n % 7) for n in range(rows)],
        "long": ["x" * 5000 if n % 500 == 0 else None for n in range(rows)],
        "words": [["a", None, f"{n}"] * (n % 3) for n in range(rows)],
        "turns": [[{"role": "user", "n": n}] for n in range(rows)],
        "number": list(range(rows)),
        "share": [n / 7 for n in range(rows)],
        "nothing": pa.nulls(rows),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", **how)
    metadata = pq.read_metadata(tmp_path / "a.parquet")
    with (tmp_path / "a.parquet").open("rb") as stream:
        for group in (metadata.row_group(number) for number in range(metadata.num_row_groups)):
            for chunk in (group.column(number) for number in range(metadata.num_columns)):
                size = unpacked_bytes(stream, chunk)
                assert chunk.total_uncompressed_size * 0.5 - 20_000 <= size <= chunk.total_uncompressed_size
    assert len(list(read_rows(tmp_path / "a.parquet"))) == rows


@pytest.mark.parametrize("header", [
    b"", b"\x00", b"\x15\x80" + b"\x80" * 20, b"\x1c" * 40, b"\x15\x00\x15\x01\x15\x02\x00",
    b"\x19\xf8\xff\xff\xff\xff\x0f", b"\x1d\x00", b"\x1b\x05\xcc" + b"\x1c" * 30,
])  # fmt: skip
def test_a_page_whose_header_is_none_is_damaged(header: bytes, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": ["b" * 100]}), tmp_path / "a.parquet", compression="none", use_dictionary=False)
    content = bytearray((tmp_path / "a.parquet").read_bytes())
    content[4 : 4 + len(header)] = header
    (tmp_path / "a.parquet").write_bytes(content if header else content[:4] + content[-60:])
    with pytest.raises(DataError, match="damaged"):
        list(read_rows(tmp_path / "a.parquet"))
