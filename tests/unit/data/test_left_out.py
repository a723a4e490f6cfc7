"""A folder of texts says what it leaves out, and reads what has a strange name."""

import logging
import os
from pathlib import Path

import pytest

from orrery.data import corpora
from orrery.data.corpora import corpus_fingerprint, read_corpus
from orrery.data.shards.large_text import ReadingOptions, read_texts
from orrery.errors import UsageError


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
