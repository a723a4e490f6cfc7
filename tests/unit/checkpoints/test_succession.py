"""A run that is being replaced is whole, the old one or the new one, wherever the process dies."""

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from orrery.checkpoints import succession
from orrery.errors import ModelFileError
from outputs_toy import tree

NAMES = ("config.yaml", "checkpoints", "final", "metrics.jsonl")


def old_run(folder: Path) -> None:
    for name in ("checkpoints/step-000004/model", "final/model", "config.yaml", "metrics.jsonl", "notes.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"old {name}")


def new_run(folder: Path) -> None:
    for name in ("checkpoints/step-000001/model", "config.yaml", "metrics.jsonl", "tokenizer.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"new {name}")


def whole(folder: Path, old: bool) -> dict[str, bytes | None]:
    old_run(folder / "old")
    new_run(folder / "new")
    (folder / "new/notes.txt").write_text("old notes.txt")
    return tree(folder / ("old" if old else "new"))


@pytest.mark.parametrize("call", range(25))
def test_it_may_die_between_any_two_steps(call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, calls = tmp_path / "run", 0
    old_run(run)
    new_run(succession.begin(run))

    def dying(real: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*words: object, **more: object) -> object:
            nonlocal calls
            calls += 1
            if calls > call:
                raise KeyboardInterrupt
            return real(*words, **more)

        return wrapped

    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        for name in ("rename", "replace", "unlink", "rmdir", "mkdir", "fsync"):
            patch.setattr(os, name, dying(getattr(os, name)))
        succession.take_over(run, NAMES)
    decided = not (run / succession.NEW).exists()
    if not decided:  # until then the old run is there as it was
        assert {name: part for name, part in tree(run).items() if not name.startswith(".")} == whole(tmp_path, old=True)
    succession.finish(run)
    if not decided:
        succession.settle(run)
    left = {name: part for name, part in tree(run).items() if name != "lock"}
    assert left == whole(tmp_path, old=not decided)


@pytest.mark.parametrize("name", ["../mine", "/etc/hosts", "..", "", "a/b", 7])
def test_a_strangers_folder_touches_nothing_outside_of_it(name: object, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    decided = tmp_path / "run" / succession.DECIDED
    decided.mkdir(parents=True)
    (decided / succession.REPLACES).write_text(json.dumps({"names": [name]}))
    before = tree(tmp_path)
    with pytest.raises(ModelFileError, match="names something other than entries"):
        succession.settle(tmp_path / "run")
    assert tree(tmp_path) == before


@pytest.mark.parametrize("link", [succession.DECIDED, succession.LEAVING, succession.LEFT, succession.NEW])
def test_a_strangers_link_is_never_followed(link: str, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home/notes.txt").write_text("mine")
    (tmp_path / "home" / succession.REPLACES).write_text(json.dumps({"names": ["notes.txt"]}))
    run = tmp_path / "run"
    run.mkdir()
    (run / "notes.txt").write_text("evil")
    if link != succession.DECIDED:
        (run / succession.DECIDED).mkdir()
        (run / succession.DECIDED / succession.REPLACES).write_text(json.dumps({"names": ["notes.txt"]}))
    (run / link).symlink_to(tmp_path / "home")
    before = tree(tmp_path / "home")
    succession.finish(run)
    succession.settle(run)
    assert tree(tmp_path / "home") == before
