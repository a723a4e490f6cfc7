"""A folder of texts says what it leaves out, and reads what has a strange name."""

import logging
import os
from pathlib import Path

import pytest

from orrery.data import corpora
from orrery.data.corpora import corpus_fingerprint, read_corpus, read_placed_rows
from orrery.data.shards.large_text import ReadingOptions, read_texts
from orrery.errors import DataError, UsageError


@pytest.fixture(autouse=True)
def told_anew() -> None:
    corpora._tell_left_out.cache_clear()


def test_files_of_another_kind_and_links_to_nothing_are_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "one.txt").write_text("one")
    (tmp_path / "two.exe").write_bytes(b"\0")
    (tmp_path / "three.txt").symlink_to("nowhere")
    (tmp_path / ".hidden").write_text("x")
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert [document.text for document in read_corpus(tmp_path)] == ["one"]
    (record,) = caplog.records
    assert record.getMessage().endswith("2 of 3 files left out, of another kind or unreadable: three.txt, two.exe")


def test_a_folder_that_may_be_listed_and_not_entered_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "one.txt").write_text("one")
    (tmp_path / "inner").mkdir()
    # Root may enter everything, so the answer of the system is made here.
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.X_OK)
    with caplog.at_level(logging.WARNING):
        assert [document.text for document in read_corpus(tmp_path)] == ["one"]
    (record,) = caplog.records
    assert record.getMessage().endswith("1 of 2 files left out, of another kind or unreadable: inner")


def test_a_folder_of_texts_alone_says_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "one.txt").write_text("one")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "two.md").write_text("two")
    assert len(list(read_corpus(tmp_path))) == 2
    assert not caplog.records


def test_a_name_that_is_not_utf8_is_spelt_out(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")).write_text("text")
    (document,) = read_corpus(tmp_path)
    assert document.name == "\\xff.txt"
    assert corpus_fingerprint([document])
    assert list(read_texts(tmp_path, ReadingOptions())) == ["text"]


def test_a_column_that_no_file_has(tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("one")
    with pytest.raises(UsageError, match="no column"):
        list(read_corpus(tmp_path, column="\udcff"))


def test_pages_are_no_parts_of_a_data_set(tmp_path):
    for name in ("training.md", "testing.md", "test.rst"):
        (tmp_path / name).write_text(f"page {name}")
    assert len(list(read_texts(tmp_path, ReadingOptions()))) == 3
    (tmp_path / "train.txt").write_text("a")
    (tmp_path / "valid.txt").write_text("b")
    with pytest.raises(DataError, match=r"holds the parts of a data set: train.txt, valid.txt"):
        list(read_texts(tmp_path, ReadingOptions()))


@pytest.mark.parametrize(
    "names",
    [
        ("train.csv", "test.csv"),
        ("train-00000-of-00001.csv", "Validation-00000-of-00001.csv"),
        ("train/a.csv", "dev/a.csv"),
    ],
    ids=" ".join,
)
def test_the_parts_of_a_data_set_are_not_read_as_one(names, tmp_path):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("text\na\n")
    for read in (read_corpus, read_placed_rows):
        with pytest.raises(DataError, match=rf"holds the parts of a data set: {names[0].split('/')[0]}, "):
            list(read(tmp_path))
    assert [row for _, row in read_placed_rows(tmp_path / names[0])] == [{"text": "a"}]


def test_names_that_only_begin_as_parts_do_are_none(tmp_path):
    for name in ("trains.txt", "testament.txt", "train.txt", "test_all.md"):
        (tmp_path / name).write_text("a")
    assert len(list(read_corpus(tmp_path))) == 4


def test_parts_lie_side_by_side(tmp_path):
    for name in ("src/train.md", "test/notes.md"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text("a")
    assert len(list(read_corpus(tmp_path))) == 2


def test_a_folder_of_a_format_that_is_not_read_says_what_to_do(tmp_path):
    for name in ("data-00000-of-00001.arrow", "state.json"):
        (tmp_path / name).write_text("{}")
    with pytest.raises(DataError, match=r"no text among its files \(2\)") as caught:
        list(read_corpus(tmp_path))
    assert ".arrow files are not read: write it as Parquet: `datasets.load_from_disk" in str(caught.value)
