"""Folders that hold models in folders of their own: which of them is meant."""

import re
from collections.abc import Callable
from pathlib import Path

from orrery.checkpoints.json_file import read_json
from orrery.errors import ModelFileError

_CHECKPOINT = re.compile(r"checkpoint-(\d{1,12})")
_STATE = "trainer_state.json"
_STATE_LIMIT = 100_000_000
"""Bytes: the state keeps what was measured at every step."""


def chosen_inside(folder: Path, say: Callable[[str], None]) -> Path:
    """Return the folder that a folder of several means, or the folder itself.

    Of what transformers' Trainer saved it is the best checkpoint where one was measured, else the newest; of a
    repository in the hub's cache the commit that ``main`` was last.

    Raises:
        ModelFileError: the repository has no commit here.
    """
    if folder.absolute().name.startswith("models--") and (folder / "refs").is_dir():
        return _snapshot(folder, say)
    if (folder / "config.json").is_file() or (folder / "adapter_config.json").is_file() or not folder.is_dir():
        return folder
    found = {int(match[1]): entry for entry in folder.iterdir() if (match := _CHECKPOINT.fullmatch(entry.name))}
    if not found:
        return folder
    newest = found[max(found)]
    best = _best(newest)
    chosen, kind = (folder / best, "best") if best and (folder / best).is_dir() else (newest, "newest")
    say(f"{folder}: the {kind} of {len(found)} checkpoints of the Trainer, {chosen.name}")
    return chosen


def _best(newest: Path) -> str | None:
    """Return the name of the checkpoint that the Trainer measured as the best."""
    state = read_json(newest / _STATE, _STATE_LIMIT) if (newest / _STATE).is_file() else {}
    best = state.get("best_model_checkpoint")
    name = re.split(r"[/\\]", best)[-1] if isinstance(best, str) else ""
    return name if _CHECKPOINT.fullmatch(name) else None


def _snapshot(repository: Path, say: Callable[[str], None]) -> Path:
    main, snapshots = repository / "refs" / "main", repository / "snapshots"
    commit = main.read_text(encoding="utf-8").strip() if main.is_file() and main.stat().st_size < 100 else ""
    commits = sorted(snapshots.glob("*"), key=lambda path: path.stat().st_mtime)
    if not commits:
        raise ModelFileError(f"{repository} has no snapshot of the model", "its download did not end: fetch it again")
    chosen = snapshots / commit if commit and (snapshots / commit) in commits else commits[-1]
    say(f"{repository}: the commit {chosen.name}")
    return chosen
