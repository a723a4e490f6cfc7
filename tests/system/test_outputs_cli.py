"""Every verb that writes keeps one rule: nothing is replaced unasked, and an input never."""

import shutil
from pathlib import Path

import pytest

import outputs_toy
from full_disk import no_room
from orrery.cli.program import run
from outputs_toy import VERBS, tree

GOES_ON, NEVER = ("train", "compare", "ladder"), ("data-prepare", "compare", "ladder")
"""Verbs that go on with ``--resume``, and those that replace nothing at all."""


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    outputs_toy.prepare(folder)
    return folder


@pytest.fixture
def here(prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of what was prepared, as the working folder."""
    folder = tmp_path / "here"
    shutil.copytree(prepared, folder)
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("verb", VERBS)
def test_what_is_there_stays_without_overwrite(verb: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if VERBS[verb].folder:
        (here / "out").mkdir()
        (here / "out/notes.txt").write_text("mine")
    else:
        (here / "out").write_text("mine")
    before = tree(here)
    assert run(VERBS[verb].line("out")) == 2, capsys.readouterr().err
    assert tree(here) == before
    assert run([*VERBS[verb].line("out"), "--resume"] if verb in GOES_ON else VERBS[verb].line("out")) == 2
    assert tree(here) == before


@pytest.mark.parametrize("verb", [verb for verb in VERBS if VERBS[verb].folder and verb not in NEVER])
def test_a_folder_of_other_things_is_not_replaced_with_overwrite_either(verb: str, here: Path) -> None:
    (here / "out").mkdir()
    (here / "out/notes.txt").write_text("mine")
    (here / "out/config.yaml").write_text("mine too")
    before = tree(here)
    assert run([*VERBS[verb].line("out"), "--overwrite"]) == 2
    assert tree(here) == before


@pytest.mark.parametrize(("verb", "read"), [(verb, read) for verb in VERBS for read in VERBS[verb].inputs])
@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_no_input_is_written_over(verb: str, read: str, overwrite: list[str], here: Path) -> None:
    if verb in NEVER:
        overwrite = []
    before = tree(here)
    assert run([*VERBS[verb].line(read), *overwrite]) == 2
    assert tree(here) == before


QUICK = [verb for verb in VERBS if not VERBS[verb].slow and verb not in ("train-vectors", "data-prepare")]


@pytest.mark.parametrize("verb", QUICK)
def test_overwrite_replaces_what_the_verb_wrote(verb: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(VERBS[verb].line("new/out")) == 0, capsys.readouterr().err
    written = tree(here / "new")
    shutil.rmtree(here / "kept", ignore_errors=True)
    (here / "kept").unlink(missing_ok=True) if verb == "data-clean-report" else None
    assert run(VERBS[verb].line("new/out")) == 2
    assert tree(here / "new") == written
    shutil.rmtree(here / "kept", ignore_errors=True)
    assert run([*VERBS[verb].line("new/out"), "--overwrite"]) == 0, capsys.readouterr().err
    assert tree(here / "new").keys() == written.keys()


@pytest.mark.parametrize("verb", QUICK)
@pytest.mark.parametrize("room", [0, 100, 3_000])
def test_a_full_disk_leaves_nothing_half_written(
    verb: str, room: int, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = tree(here)
    with no_room(room):
        code = run(VERBS[verb].line("new/out"))
    if code == 0:
        assert room > 0
        return
    assert code == 5, capsys.readouterr().err
    files = tree(here)
    if verb == "train":  # what was logged so far, and no checkpoint
        assert not [name for name in files if name.startswith("new/out/checkpoints/step-")]
        files = {name: part for name, part in files.items() if not name.startswith("new")}
    if verb == "data-clean-report":  # of two files the first may be complete
        files = {name: part for name, part in files.items() if not name.startswith("new")}
    assert files == before
