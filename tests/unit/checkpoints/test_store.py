import json
import os
import stat
from pathlib import Path

import pytest
import torch

from orrery.checkpoints import disk, manifest
from orrery.checkpoints.places import place_of
from orrery.checkpoints.store import MODEL, Checkpoint, CheckpointStore, read_checkpoint
from orrery.errors import MachineError, ModelFileError


def checkpoint(step: int) -> Checkpoint:
    weights = {"w": torch.full((4, 4), float(step))}
    return Checkpoint(step, weights, {"exp_avg/w": weights["w"] / 2}, {"note": "x"}, {"kind": "toy"})


@pytest.fixture
def store(tmp_path: Path) -> CheckpointStore:
    store = CheckpointStore(tmp_path / "checkpoints", keep=2)
    store.open()
    return store


def newest(store: CheckpointStore) -> tuple[int | None, list[str]]:
    warnings: list[str] = []
    checkpoint_found = store.newest(warnings.append)
    return (checkpoint_found.step if checkpoint_found else None), warnings


def test_load_gives_what_was_saved(store: CheckpointStore) -> None:
    path = store.save(checkpoint(7))
    loaded = read_checkpoint(path)
    assert torch.equal(loaded.model["w"], checkpoint(7).model["w"])
    assert torch.equal(loaded.optimizer["exp_avg/w"], checkpoint(7).optimizer["exp_avg/w"])
    assert (loaded.step, loaded.state["note"], loaded.spec) == (7, "x", {"kind": "toy"})


def test_keeps_the_last_two_and_the_best(store: CheckpointStore) -> None:
    for step in range(1, 6):
        store.save(checkpoint(step), best=step == 2)
    assert store.steps() == [5, 4, 2]
    assert (store.folder / "latest").read_text() == "step-000005\n"
    assert store.best() == 2


def test_saves_the_same_step_again_over_a_damaged_one(store: CheckpointStore) -> None:
    (store.save(checkpoint(3)) / MODEL).write_bytes(b"")
    store.save(checkpoint(3))
    assert newest(store) == (3, [])
    assert sorted(path.name for path in store.folder.iterdir()) == ["latest", "step-000003"]


DAMAGE = {
    "truncated": lambda data: data[:-3],
    "extended": lambda data: data + b"more",
    "empty": lambda data: b"",
    "flipped bit": lambda data: data[:-5] + bytes([data[-5] ^ 1]) + data[-4:],
}


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("name", [MODEL, "optimizer.safetensors", "state.json", "spec.json", manifest.NAME])
def test_damage_is_named_and_the_checkpoint_before_is_taken(kind: str, name: str, store: CheckpointStore) -> None:
    store.save(checkpoint(1))
    path = store.save(checkpoint(2)) / name
    whole = path.read_bytes()
    path.write_bytes(DAMAGE[kind](whole))
    step, warnings = newest(store)
    assert step == 1
    assert str(path) in warnings[0]
    if name == MODEL and kind != "flipped bit":
        assert f"{len(whole):,}" in warnings[0]
        assert f"{path.stat().st_size:,}" in warnings[0]


def test_all_damaged_is_an_error_not_a_new_beginning(store: CheckpointStore) -> None:
    (store.save(checkpoint(1)) / MODEL).unlink()
    with pytest.raises(ModelFileError, match=r"model\.safetensors is missing"):
        newest(store)


def test_a_newer_format_is_refused_with_both_versions(store: CheckpointStore) -> None:
    store.save(checkpoint(1))
    path = store.save(checkpoint(2)) / manifest.NAME
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "format": 9, "written_by": "7.0"}))
    with pytest.raises(ModelFileError, match=r"written by Orrery 7\.0 \(format 9\); this is") as caught:
        newest(store)
    assert caught.value.exit_code == 4


def test_a_manifest_cannot_name_a_file_elsewhere(store: CheckpointStore) -> None:
    path = store.save(checkpoint(1)) / manifest.NAME
    path.write_text(path.read_text().replace("spec.json", "../spec.json"))
    with pytest.raises(ModelFileError, match="no plain file"):
        newest(store)


@pytest.mark.parametrize("latest", [None, "step-000099\n", ""])
def test_the_highest_sound_step_is_taken_whatever_latest_says(latest: str | None, store: CheckpointStore) -> None:
    store.save(checkpoint(1))
    os.utime(store.save(checkpoint(2)), (0, 0))  # the clock jumped
    (store.folder / "latest").unlink()
    if latest is not None:
        (store.folder / "latest").write_text(latest)
    assert newest(store) == (2, [])


def test_open_removes_what_killed_processes_left(store: CheckpointStore) -> None:
    store.save(checkpoint(1))
    for name in ("step-000002.tmp-12-ab34", "step-000001.old-12-ab34"):
        (store.folder / name).mkdir()
        (store.folder / name / MODEL).write_bytes(b"part")
    (store.folder / "latest.tmp-12").write_text("part")
    store.open()
    assert sorted(path.name for path in store.folder.iterdir()) == ["latest", "step-000001"]


def test_files_have_the_rights_the_umask_leaves(store: CheckpointStore) -> None:
    before = os.umask(0o027)
    try:
        path = store.save(checkpoint(1))
    finally:
        os.umask(before)
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.iterdir()} == {0o640}


def test_bytes_reach_the_disk_before_names(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.save(checkpoint(1))
    store.keep = 1
    events: list[str] = []
    real_fsync, real_replace, real_remove = os.fsync, os.replace, disk.remove_tree

    def name(path: str | Path) -> str:
        return Path(path).name.split(".tmp-")[0] or "?"

    def fsync(handle: int) -> None:
        events.append("fsync " + name(os.readlink(f"/proc/self/fd/{handle}")))
        real_fsync(handle)

    def replace(source: Path, target: Path) -> None:
        events.append("rename " + name(target))
        real_replace(source, target)

    def remove(path: Path) -> None:
        if path.exists():
            events.append("remove " + path.name)
        real_remove(path)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.setattr(disk, "remove_tree", remove)
    store.save(checkpoint(2))
    files = [f"fsync {file}" for file in (MODEL, "optimizer.safetensors", "state.json", "spec.json", manifest.NAME)]
    moved = ["fsync step-000002", "rename step-000002", "fsync checkpoints"]
    pointed = ["fsync latest", "rename latest", "fsync checkpoints", "remove step-000001"]
    assert events == [*files, *moved, *pointed]


@pytest.mark.parametrize("number", ["ENOSPC", "EFBIG", "EDQUOT", "EACCES", "EROFS", "EIO"])
@pytest.mark.parametrize("place", range(5))
def test_a_disk_that_refuses_anywhere_leaves_the_old_checkpoint(
    number: str, place: int, store: CheckpointStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno

    store.save(checkpoint(1))
    calls, real = [0], os.fsync

    def failing(handle: int) -> None:
        calls[0] += 1
        if calls[0] == place + 1:
            raise OSError(getattr(errno, number), os.strerror(getattr(errno, number)))
        real(handle)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(MachineError) as caught:
        store.save(checkpoint(2))
    monkeypatch.undo()
    assert caught.value.exit_code == 5
    if number == "ENOSPC":
        assert "bytes needed" in caught.value.message
        assert "free" in caught.value.message
    assert newest(store) == (1, [])
    assert not list(store.folder.glob("*.tmp-*"))


def test_too_little_room_is_seen_before_writing(store: CheckpointStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "free_bytes", lambda path: 1000)
    with pytest.raises(MachineError, match="1,000 free"):
        store.save(checkpoint(1))
    assert store.steps() == []


def test_two_checkpoints_are_kept_where_nobody_says_how_many(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path / "run")
    store.open()
    for step in (1, 2, 3):
        store.save(checkpoint(step))
    assert [store.path(step).exists() for step in (1, 2, 3)] == [False, True, True]


@pytest.mark.parametrize("name", ["a\0b", "long" * 2000])
def test_a_name_that_no_file_can_have_does_not_exist(name: str) -> None:
    with pytest.raises(ModelFileError, match="does not exist"):
        place_of(name)
