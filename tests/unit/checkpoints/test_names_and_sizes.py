"""Whose names are whose in a folder of checkpoints, and how long a JSON file may be."""

import errno
import os
import sys
from pathlib import Path

import pytest

from orrery.checkpoints import disk
from orrery.checkpoints.json_file import read_json
from orrery.checkpoints.names import is_ours
from orrery.errors import MachineError, ModelFileError, OrreryError, UsageError


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


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_disk_that_is_full_while_it_is_written_is_told_alike(number: int, tmp_path: Path) -> None:
    for needed, told in (((), "a.json: [0-9,]+ bytes free"), ((1,), "a.json: 1 bytes needed, [0-9,]+ free")):
        with (
            pytest.raises(MachineError, match=told) as full,
            disk.machine_errors(tmp_path / "a.json", *needed),
        ):
            raise OSError(number, os.strerror(number))
        assert full.value.hint == disk.MORE_ROOM
    with pytest.raises(MachineError) as full, disk.machine_errors(tmp_path, 1, "remove runs"):
        raise OSError(number, os.strerror(number))
    assert full.value.hint == "remove runs"


@pytest.mark.parametrize(
    ("number", "kind", "told", "hint"),
    [
        (errno.EACCES, MachineError, "cannot write in ", "choose a folder with write permission"),
        (errno.EROFS, MachineError, "cannot write in ", "choose a folder with write permission"),
        (errno.EIO, MachineError, "the disk failed at ", "check the disk"),
        (errno.ENOTDIR, UsageError, "cannot write ", "choose another name or folder"),
        (errno.ENAMETOOLONG, UsageError, "cannot write ", "choose another name or folder"),
        (errno.EPIPE, OSError, "", ""),
    ],
)
def test_what_a_disk_refuses_is_told_with_its_path_and_what_to_do(
    number: int, kind: type[Exception], told: str, hint: str, tmp_path: Path
) -> None:
    path, why = tmp_path / "run", os.strerror(number)
    with pytest.raises(kind) as refused, disk.machine_errors(path):
        raise OSError(number, why, str(path / "a"))
    if isinstance(refused.value, OrreryError):
        assert (refused.value.message, refused.value.hint) == (f"{told}{path}: {why}", hint)


def test_an_error_of_another_place_is_passed_on(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), disk.machine_errors(tmp_path / "run"):
        raise PermissionError(errno.EACCES, "Permission denied", str(tmp_path / "other" / "a"))
