"""Whose names are whose in a folder of checkpoints, and how long a JSON file may be."""

import os
import sys
from pathlib import Path

import pytest

from orrery.checkpoints import disk
from orrery.checkpoints.json_file import read_json
from orrery.checkpoints.names import is_ours
from orrery.errors import ModelFileError


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("step-000500", True),
        ("step-1000000", True),
        ("step-000500.tmp-12-ab0f", True),
        ("step-000500.old-7-1", True),
        ("latest", True),
        ("best", True),
        ("best.tmp-12", True),
        ("step-5", False),
        ("step-000500.bak", False),
        ("latest-notes.txt", False),
        ("thesis", False),
    ],
)
def test_every_name_that_a_store_gives_is_known_and_no_other(name: str, ours: bool) -> None:
    assert is_ours(name) is ours


def test_a_file_of_four_million_bytes_is_read_and_one_byte_more_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text('{"a": 1}'.ljust(4_000_000), encoding="utf-8")
    assert read_json(file) == {"a": 1}
    file.write_text('{"a": 1}'.ljust(4_000_001), encoding="utf-8")
    with pytest.raises(ModelFileError, match="at most 4,000,000 bytes"):
        read_json(file)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="renameat2 is a call of Linux")
def test_two_names_are_exchanged_in_one_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        Path(name).mkdir()
        Path(name, name).touch()
    monkeypatch.setattr(os, "rename", None)  # the way in three steps, in which a kill leaves one of them away
    disk.exchange(Path("a"), Path("b"), Path("between"))
    assert (os.listdir("a"), os.listdir("b")) == (["b"], ["a"])


def test_a_full_disk_is_told_with_the_bytes_that_are_known(tmp_path: Path) -> None:
    assert "a.json: 5,000 bytes needed, " in disk.no_room(tmp_path / "a.json", 5000).message
    assert "needed" not in disk.no_room(tmp_path / "a.json", 0).message
