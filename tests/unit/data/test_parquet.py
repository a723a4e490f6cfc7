"""Parquet through pyarrow; without the extra `data`, the refusal alone is tested."""

import io
import random
import sys

import pytest

from orrery.data.corpora import read_corpus, read_rows
from orrery.data.readers import parquet
from orrery.errors import DataError, MachineError


@pytest.fixture
def save(tmp_path):
    import pyarrow
    import pyarrow.parquet

    def write(columns, name="a.parquet", **options):
        table = pyarrow.table(columns)
        pyarrow.parquet.write_table(table, tmp_path / name, **options)
        return tmp_path / name

    return write


def texts(source, **options):
    return [document.text for document in read_corpus(source, **options)]


def test_without_the_library_the_command_that_installs_it_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(MachineError, match=r"pip install 'orrery-lm\[data\]'"):
        texts(tmp_path / "a.parquet")


@pytest.mark.parametrize("options", [{}, {"row_group_size": 7}, {"compression": "zstd"}, {"use_dictionary": False}])
def test_rows_are_read_in_order(options, save):
    written = [f"é {number}\n\x00" for number in range(3000)]
    file = save({"text": written, "label": list(range(3000))}, **options)
    assert texts(file) == written
    assert [document.name for document in read_corpus(file)][:2] == ["a.parquet:1", "a.parquet:2"]
    assert list(read_rows(file))[2] == {"text": "é 2\n\x00", "label": 2}
    assert list(read_rows(file, ["label"]))[-1] == {"label": 2999}


def test_every_kind_of_text_column_is_a_text(save):
    import pyarrow

    array = pyarrow.array(["a", "b", "a"])
    for column in (array, array.cast("large_string"), array.cast("string_view"), array.dictionary_encode()):
        assert texts(save({"text": column})) == ["a", "b", "a"]


def test_bad_rows_are_named_and_counted(save):
    import pyarrow

    file = save({"text": ["a", None, "b"]})
    with pytest.raises(DataError, match=r"a\.parquet:2: column 'text' is not a text but NoneType"):
        texts(file)
    assert texts(file, skip_bad=1) == ["a", "b"]
    invalid = pyarrow.StringArray.from_buffers(
        2, pyarrow.py_buffer(b"\0\0\0\0\1\0\0\0\3\0\0\0"), pyarrow.py_buffer(b"a\xffb")
    )
    file = save({"text": invalid})
    with pytest.raises(DataError, match=r"a\.parquet:2: invalid UTF-8 at byte 0"):
        texts(file)
    assert texts(file, skip_bad=1) == ["a"]
    assert texts(file, invalid="replace") == ["a", "\ufffdb"]


def test_a_missing_column_names_those_there_are(save):
    with pytest.raises(DataError, match=r"no column 'text' \(hint: it has 2 columns: body, label"):
        texts(save({"body": ["x"], "label": [1]}))
    with pytest.raises(DataError, match="not a text but int"):
        texts(save({"text": [1]}))
    with pytest.raises(DataError, match="0 documents"):
        texts(save({"text": []}))


def test_damaged_files_are_told(save, tmp_path):
    content = save({"text": [f"{number} word" for number in range(500)]}, use_dictionary=False).read_bytes()
    middle = content[:100] + bytes(200) + content[300:]
    for damaged in (b"", b"PAR1", b"text", content[:-9], content[:50], content[9:], middle):
        (tmp_path / "b.parquet").write_bytes(damaged)
        with pytest.raises(DataError, match=r"b\.parquet: damaged, or not Parquet"):
            texts(tmp_path / "b.parquet")


class Recording(io.FileIO):
    """A file that keeps the largest number of bytes that it was asked for at once."""

    largest = 0

    def read(self, size=-1):
        content = super().read(size)
        Recording.largest = max(Recording.largest, len(content))
        return content


def test_a_row_group_as_large_as_the_file_is_not_held_in_memory(save, monkeypatch):
    import pyarrow

    words = random.Random(1)
    rows = [words.randbytes(1000).hex() for _ in range(10_000)]  # 20 MB that compression leaves large
    file = save({"text": rows}, row_group_size=10_000, use_dictionary=False)
    monkeypatch.setattr(parquet, "open_binary", lambda path: Recording(path))
    before = pyarrow.total_allocated_bytes()
    count, held = 0, 0
    for _ in read_corpus(file):
        count += 1
        held = max(held, pyarrow.total_allocated_bytes() - before)
    assert count == 10_000
    assert 0 < Recording.largest < 3_000_000
    assert held < 10_000_000
