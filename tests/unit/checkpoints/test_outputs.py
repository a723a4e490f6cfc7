"""The rule for outputs: nothing is replaced unasked, no input ever, and a name is given last."""

import contextlib
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from orrery.checkpoints import outputs
from orrery.checkpoints.lock import folder_lock
from orrery.checkpoints.outputs import OutputFile, OutputFolder, is_path
from orrery.data.corpora import locate
from orrery.errors import OrreryError, UsageError
from outputs_toy import tree


def test_a_new_file_is_written_with_the_folders_above_it(tmp_path: Path) -> None:
    OutputFile(tmp_path / "a/b/c.txt").write("text\n")
    assert tree(tmp_path) == {"a": None, "a/b": None, "a/b/c.txt": b"text\n"}


@pytest.mark.parametrize(("kind", "name"), [("svg", "tree.png"), ("svg", "a.b.PDF"), ("html", "page.svg")])
def test_a_name_that_says_another_kind_is_refused(tmp_path: Path, kind: str, name: str) -> None:
    with pytest.raises(UsageError, match=f"what is written is {kind.upper()}") as refused:
        OutputFile.shown(kind, tmp_path / name)
    assert refused.value.hint == f"name it {Path(name).stem}.{kind}"
    assert tree(tmp_path) == {}


@pytest.mark.parametrize(
    ("kind", "name"), [("svg", "a.svg"), ("svg", "a.json"), ("svg", "a"), ("html", "a.HTM"), ("html", "a.html")]
)
def test_a_name_that_says_nothing_else_is_taken(tmp_path: Path, kind: str, name: str) -> None:
    OutputFile.shown(kind, tmp_path / name).write("drawn")
    assert (tmp_path / name).read_text() == "drawn"


def test_an_existing_file_stays_unless_overwrite_is_given(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine")
    file.chmod(0o640)
    with pytest.raises(UsageError, match=r"exists already .*--overwrite"):
        OutputFile(file)
    assert file.read_text() == "mine"
    OutputFile(file, overwrite=True).write("new")
    assert file.read_text() == "new"
    assert file.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("way", ["path", "other spelling", "link", "hard link", "in an input folder"])
def test_an_input_is_never_written_over(way: str, overwrite: bool, tmp_path: Path) -> None:
    source = tmp_path / "folder" / "text.txt"
    source.parent.mkdir()
    source.write_text("precious")
    names = {
        "path": source,
        "other spelling": tmp_path / "folder" / ".." / "folder" / "text.txt",
        "link": tmp_path / "link.txt",
        "hard link": tmp_path / "hard.txt",
        "in an input folder": source,
    }
    (tmp_path / "link.txt").symlink_to(source)
    os.link(source, tmp_path / "hard.txt")
    before = tree(tmp_path)
    read = source.parent if way == "in an input folder" else source
    with pytest.raises(UsageError):
        OutputFile(names[way], inputs=["python-docs", None, read], overwrite=overwrite)
    assert tree(tmp_path) == before


def test_two_outputs_of_one_command_may_not_be_one_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="same file"):
        outputs.refuse_same(OutputFile(tmp_path / "a"), OutputFile(tmp_path / "b/../a"))
    outputs.refuse_same(OutputFile(tmp_path / "a"), OutputFile(tmp_path / "b"))


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/a.txt").write_text("old")
    (tmp_path / "a.txt").symlink_to(tmp_path / "real/a.txt")
    OutputFile(tmp_path / "a.txt", overwrite=True).write("new")
    assert (tmp_path / "a.txt").is_symlink()
    assert (tmp_path / "real/a.txt").read_text() == "new"


PLACES = (
    "below a file", "far below a file", "proc", "a name too long", "a path too long", "dangling", "loop",
    "below a loop", "nul",
)  # fmt: skip


def places(folder: Path) -> dict[str, str]:
    (folder / "file").write_text("mine")
    (folder / "dangling").symlink_to(folder / "nothing")
    (folder / "loop").symlink_to(folder / "loop")
    return {
        "below a file": str(folder / "file/out"),
        "far below a file": str(folder / "file/a/b/out"),
        "proc": "/proc/out",
        "a name too long": str(folder / ("n" * 300)),
        "a path too long": str(folder / "/".join(["n" * 200] * 30)),
        "dangling": str(folder / "dangling"),
        "loop": str(folder / "loop"),
        "below a loop": str(folder / "loop/out"),
        "nul": str(folder / "a\0b"),
    }


@pytest.mark.parametrize("make", [OutputFile, OutputFolder])
@pytest.mark.parametrize("place", PLACES)
def test_a_path_that_cannot_be_is_refused_at_once(place: str, make: Callable[..., object], tmp_path: Path) -> None:
    path = places(tmp_path)[place]
    before = tree(tmp_path)
    with pytest.raises(OrreryError):
        make(path, overwrite=True)
    assert tree(tmp_path) == before


def test_devices_and_pipes_are_written_to_and_never_replaced(tmp_path: Path) -> None:
    OutputFile("/dev/null").write("gone")
    assert Path("/dev/null").is_char_device()
    os.mkfifo(tmp_path / "pipe")
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append((tmp_path / "pipe").read_text()))
    reader.start()
    OutputFile(tmp_path / "pipe").write("through")
    reader.join(10)
    assert heard == ["through"]
    assert (tmp_path / "pipe").is_fifo()
    with pytest.raises(UsageError, match="pipe"), OutputFile("/dev/null").aside():
        pass


def fail_inside(output: OutputFile, error: BaseException) -> None:
    with output.lines() as stream:
        stream.write("half")
        stream.flush()
        raise error


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt(), SystemExit(143)])
def test_a_failure_leaves_what_was_there(error: BaseException, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")
    before = tree(tmp_path)
    for name in ("a.txt", "new/folder/b.txt"):
        with pytest.raises((OrreryError, type(error))):
            fail_inside(OutputFile(tmp_path / name, overwrite=True), error)
    assert tree(tmp_path) == before


def test_what_came_in_the_meantime_stays(tmp_path: Path) -> None:
    output = OutputFile(tmp_path / "a")
    (tmp_path / "a").write_text("another's")
    with pytest.raises(UsageError, match="exists already"):
        output.write("mine")
    assert tree(tmp_path) == {"a": b"another's"}


def test_leftovers_of_killed_processes_go_and_those_of_living_ones_stay(tmp_path: Path) -> None:
    dead = 2**22 + 1  # above the largest number that Linux gives
    with OutputFile(tmp_path / "a").aside() as fresh:
        mark = fresh.name.rpartition("-")[0]
        fresh.write_text("x")
    (tmp_path / f"{mark}-{dead}").write_text("left")
    (tmp_path / f"{mark}-1").write_text("somebody is writing")
    OutputFile(tmp_path / "a", overwrite=True).write("new")
    assert sorted(tree(tmp_path)) == sorted({"a", f"{mark}-1"})


def write_folder(target: OutputFolder, text: str) -> None:
    with target.aside() as fresh:
        fresh.mkdir()
        (fresh / "one").write_text(text)
        (fresh / "two").write_text(text)


def test_a_folder_is_replaced_whole_and_only_where_it_holds_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    write_folder(OutputFolder(folder, ("one", "two")), "old")
    with pytest.raises(UsageError, match=r"not empty: it has one, two .*--overwrite"):
        OutputFolder(folder, ("one", "two"))
    write_folder(OutputFolder(folder, ("one", "two"), overwrite=True), "new")
    assert tree(tmp_path) == {"out": None, "out/one": b"new", "out/two": b"new"}
    (folder / "notes.txt").write_text("mine")
    before = tree(tmp_path)
    with pytest.raises(UsageError, match=r"has notes\.txt"):
        OutputFolder(folder, ("one", "two"), overwrite=True)
    assert tree(tmp_path) == before


def test_a_folder_with_an_input_in_it_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/one").write_text("read by the command")
    with pytest.raises(UsageError, match="lies in"):
        OutputFolder(tmp_path / "out", ("one",), inputs=[tmp_path / "out/one"], overwrite=True)
    with pytest.raises(UsageError, match="read by this command"):
        OutputFolder(tmp_path / "out", ("one",), inputs=[tmp_path / "out"], overwrite=True)


@pytest.mark.parametrize("atomic", [True, False])
@pytest.mark.parametrize("call", range(1, 5))
def test_killed_between_any_two_steps_a_folder_is_the_old_or_the_new_one(
    atomic: bool, call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    write_folder(OutputFolder(folder, ("one", "two")), "old")
    old = tree(tmp_path)
    calls = 0

    def dying(real: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*words: object) -> object:
            nonlocal calls
            calls += 1
            if calls >= call:  # a killed process does nothing more
                raise KeyboardInterrupt
            return real(*words)

        return wrapped

    if not atomic:
        monkeypatch.setattr("ctypes.CDLL", lambda *words, **more: None)
    target = OutputFolder(folder, ("one", "two"), overwrite=True)
    with monkeypatch.context() as patch:
        for module, name in ((os, "rename"), (outputs, "remove"), (outputs, "exchange"), (outputs, "fsync_folder")):
            if name != "exchange" or atomic:
                patch.setattr(module, name, dying(getattr(module, name)))
        with contextlib.suppress(KeyboardInterrupt):
            write_folder(target, "new")
    write = OutputFolder(folder, ("one", "two"), overwrite=True)  # whatever comes next to the folder mends it
    left = {name: content for name, content in tree(tmp_path).items() if not name.startswith(".orrery-")}
    assert left in (old, {name: content and b"new" for name, content in old.items()})
    write_folder(write, "third")
    assert {
        name: content for name, content in tree(tmp_path).items() if ".old" not in name and "orrery" not in name
    } == {name: content and b"third" for name, content in old.items()}


def test_a_name_that_no_path_can_have_is_no_path(tmp_path):
    assert is_path(tmp_path)
    assert not is_path(tmp_path / "nothing")
    assert not is_path("a\0b")


@pytest.mark.parametrize("address", ["s3://bucket/run", "gs://bucket/run.csv", "hdfs://here/run"])
def test_an_address_of_a_store_is_no_folder(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for use in (OutputFolder, lambda place: folder_lock(Path(place)).__enter__(), locate):
        with pytest.raises(UsageError, match=r"is an address \(\w+://\)") as fault:
            use(address)
        assert "mount" in fault.value.hint
    assert not [*tmp_path.iterdir()]
