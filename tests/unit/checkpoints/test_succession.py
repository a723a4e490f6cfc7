"""A run that is being replaced is whole, the old one or the new one, wherever the process dies."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from orrery.checkpoints import succession
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
    found = {name: part for name, part in tree(run).items() if name != "lock"}
    assert found == whole(tmp_path, old=not decided)
