"""The root that generated code sees, put together without a mount: which files, in which order, how closed."""

import os
import sys
from types import SimpleNamespace

import pytest

from orrery.sandbox import filesystem, kernel

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the sandbox is of Linux")

CLOSED = kernel.NO_SUID | kernel.NO_DEVICES


@pytest.fixture
def events(monkeypatch):
    """Note what is done to the machine in place of doing it."""
    done = []

    def noted(name):
        return lambda *words, **named: done.append((name, *words, *named.values()))

    calls = SimpleNamespace(**{name: noted(name) for name in ("mkdir", "chdir", "rmdir", "symlink")}, path=os.path)
    for name in ("mount", "unmount", "pivot_root", "bind"):
        monkeypatch.setattr(filesystem.kernel, name, noted(name))
    monkeypatch.setattr(filesystem, "os", calls)
    monkeypatch.setattr(filesystem, "_place", noted("place"))
    return done


@pytest.mark.parametrize("python_is_there", [True, False])
def test_the_old_root_is_gone_before_the_new_one_is_closed(python_is_there, events, monkeypatch):
    monkeypatch.setattr(filesystem, "visible", lambda: ["/lib", "/usr/lib"])
    monkeypatch.setattr(filesystem, "_show", lambda path, library: events.append(("show", path)))
    filesystem.os.path = SimpleNamespace(exists=lambda path: python_is_there)
    filesystem.build(4096)
    place, work = filesystem.TEMPORARY, filesystem.WORK
    devices = [
        step
        for name in filesystem.DEVICES
        for step in (
            ("place", f"/dev/{name}", False),
            ("mount", f"/.machine/dev/{name}", f"/dev/{name}", kernel.BIND),
        )
    ]
    assert events == [
        ("mount", "", "/", kernel.RECURSIVE | kernel.PRIVATE),
        ("mount", "tmpfs", place, "tmpfs", CLOSED, "size=1m,nr_inodes=4096,mode=755"),
        ("mkdir", f"{place}/.machine"),
        ("pivot_root", place, f"{place}/.machine"),
        ("chdir", "/"),
        ("show", "/lib"),
        ("show", "/usr/lib"),
        *devices,
        ("mkdir", work),
        *([] if python_is_there else [("symlink", work, place)]),
        (
            "mount", "tmpfs", work, "tmpfs", CLOSED | kernel.NO_EXECUTION,
            f"size=4096,nr_inodes={filesystem.FILES},mode=1777",
        ),
        ("unmount", "/.machine"),
        ("rmdir", "/.machine"),
        ("mount", "", "/", kernel.BIND | kernel.REMOUNT | kernel.READ_ONLY | CLOSED),
        ("chdir", work),
    ]  # fmt: skip


def test_what_is_shown_holds_the_library_and_nothing_twice():
    shown = filesystem.visible()
    for path in (os.path.dirname(os.__file__), filesystem.PYTHON, "/usr/lib"):
        assert any(path == one or path.startswith(f"{one}/") for one in shown)
    assert not [(one, other) for one in shown for other in shown if one.startswith(f"{other}/")]
    closed = {f"/{name}" for name in ("", "etc", "home", "root", "proc")}
    assert not (closed | {filesystem.TEMPORARY}) & set(shown)


@pytest.mark.parametrize(
    ("kind", "done"),
    [
        ("link", [("place", "/usr", True), ("symlink", "lib64", "/usr/lib")]),
        ("gone", []),
        ("file", [("place", "/usr/lib", False), ("bind", "/.machine/usr/lib", "/usr/lib")]),
        ("folder", [("place", "/usr/lib", True), ("bind", "/.machine/usr/lib", "/usr/lib")]),
    ],
)
def test_one_path_is_shown_as_what_it_is(kind, done, events, monkeypatch):
    monkeypatch.setattr(filesystem, "_packages", lambda path, library: iter(()))
    filesystem.os.readlink = lambda path: "lib64"
    filesystem.os.path = SimpleNamespace(
        islink=lambda path: kind == "link",
        exists=lambda path: kind in ("file", "folder"),
        isdir=lambda path: kind == "folder",
        dirname=os.path.dirname,
    )
    filesystem._show("/usr/lib", "/usr/lib/python3")
    assert events == done


def test_installed_packages_are_covered(events, monkeypatch):
    monkeypatch.setattr(filesystem, "_packages", lambda path, library: iter([f"{path}/site-packages"]))
    filesystem.os.path = SimpleNamespace(islink=lambda path: False, exists=lambda path: True, isdir=lambda path: True)
    filesystem._show("/usr/lib", "/usr/lib/python3")
    assert events[-1] == (
        "mount", "tmpfs", "/usr/lib/site-packages", "tmpfs", kernel.READ_ONLY | CLOSED, "size=4k",
    )  # fmt: skip


def test_packages_are_found_beside_the_library_and_inside_what_is_shown(tmp_path):
    inside, outside = tmp_path / "lib", tmp_path / "other"
    for folder in (inside / "python3", inside, outside):
        (folder / "site-packages").mkdir(parents=True)
    (inside / "python3" / "dist-packages").mkdir()
    (inside / "perl" / "site-packages").mkdir(parents=True)
    listed = list(filesystem._packages(str(inside), str(outside)))
    assert listed == [str(inside / "site-packages"), *(str(inside / "python3" / name) for name in filesystem.PACKAGES)]


@pytest.mark.parametrize("folder", [True, False])
def test_a_place_for_a_mount_is_empty(folder, tmp_path):
    place = tmp_path / "a" / "b"
    filesystem._place(str(place), folder=folder)
    filesystem._place(str(place), folder=folder)
    assert place.is_dir() is folder
    assert list(place.iterdir()) == [] if folder else place.read_bytes() == b""
