"""What the process that opens a pickle may open: files to read, and the one file that it writes."""

import os

import pytest

from orrery.reading import unpickle


@pytest.mark.parametrize(
    ("mode", "flags", "writes"),
    [
        ("r", 0, False), ("rb", 0, False), ("w", 0, True), ("wb", 0, True), ("a", 0, True), ("x", 0, True),
        ("r+", 0, True), (None, os.O_RDONLY, False), (None, os.O_WRONLY, True), (None, os.O_RDWR | os.O_CREAT, True),
    ],
)  # fmt: skip
def test_an_open_for_writing_is_known_by_its_mode_or_its_flags(mode: str | None, flags: int, writes: bool) -> None:
    assert unpickle._writes(("x", mode, flags)) == writes


def test_only_the_target_is_written(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    hooks = []
    monkeypatch.setattr(unpickle.sys, "addaudithook", hooks.append)
    target = tmp_path / "out"
    unpickle._watch(target)
    (hook,) = hooks
    hook("open", (str(target), "wb", 0))
    hook("open", (str(tmp_path / "other"), "rb", 0))
    hook("import", ("json", None))
    for event, given in (
        ("open", (str(tmp_path / "other"), "wb", 0)),
        ("socket.connect", (1, 2)),
        ("os.remove", ("x",)),
    ):
        with pytest.raises(PermissionError, match="the file tried"):
            hook(event, given)


def test_the_limits_leave_room_for_the_tensors_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    resource = pytest.importorskip("resource")
    set_to = {}
    monkeypatch.setattr(resource, "setrlimit", lambda kind, most: set_to.__setitem__(kind, most))
    for size in (0, 10**6, 10**9):
        unpickle._bound(size)
        written = set_to[resource.RLIMIT_FSIZE][0]
        assert 2 * size < written <= 2 * size + 2**21
        assert set_to[resource.RLIMIT_AS][0] > 3 * size
        assert set_to[resource.RLIMIT_CPU][0] >= 60
        assert set_to[resource.RLIMIT_CORE] == (0, 0)


def test_the_worlds_apart_are_those_of_the_kernel() -> None:
    # sched.h: CLONE_NEWUSER and CLONE_NEWNET are single bits.
    assert (unpickle._NEW_USER, unpickle._NEW_NETWORK) == (1 << 28, 1 << 30)
