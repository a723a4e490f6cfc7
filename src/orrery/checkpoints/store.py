"""The checkpoints of one run: folders that appear complete or not at all; the newest sound one is used."""

import json
import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from orrery.checkpoints import disk, manifest
from orrery.checkpoints.names import FOLDER, LEFTOVER
from orrery.checkpoints.tensors import read_tensors, write_tensors
from orrery.errors import ModelFileError

MODEL, OPTIMIZER, STATE, SPEC = "model.safetensors", "optimizer.safetensors", "state.json", "spec.json"
OBJECTIVE = "objective.safetensors"
"""The weights that the objective owns beside the model; there is no such file where it owns none."""

WriteTensors = Callable[[Path, dict[str, Tensor]], str]
FEWER = f"{disk.MORE_ROOM}, or lower checkpoints.keep"


@dataclass(frozen=True)
class Checkpoint:
    """All that continues a run: weights and optimizer by name, the loop's state, the spec, what the objective owns."""

    step: int
    model: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    state: dict[str, Any]
    spec: dict[str, Any]
    objective: dict[str, Tensor] = field(default_factory=dict)

    def files(self) -> list[tuple[str, dict[str, Tensor]]]:
        """Return the files of tensors, by name, in the order in which they are written."""
        own = [(OBJECTIVE, self.objective)] if self.objective else []
        return [(MODEL, self.model), (OPTIMIZER, self.optimizer), *own]

    def bytes(self) -> int:
        """Bytes that saving needs, with room for the headers and the JSON files."""
        tensors = (*self.model.values(), *self.optimizer.values(), *self.objective.values())
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors) + 1_000_000


class CheckpointStore:
    """Saves and loads the checkpoints below ``folder``, of which the last ``keep`` and the best stay.

    Written are the data files, each synced, then the manifest, the folder's sync, the rename, the parent's
    sync, ``latest``, and only then are old ones removed. A crash between any two of these leaves a sound
    checkpoint.
    """

    def __init__(self, folder: Path, keep: int = 2) -> None:
        self.folder = folder
        self.keep = keep

    def open(self) -> None:
        """Create the folder if needed and remove what killed processes left half-written."""
        with disk.machine_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            for path in self.folder.iterdir():
                if LEFTOVER.fullmatch(path.name):
                    disk.remove_tree(path)
                elif ".tmp-" in path.name:
                    path.unlink(missing_ok=True)

    def steps(self) -> list[int]:
        """Return the steps that have a checkpoint folder, sound or not, the newest first."""
        names = (path.name for path in self.folder.glob("step-*"))
        return sorted((int(match[1]) for name in names if (match := FOLDER.fullmatch(name))), reverse=True)

    def path(self, step: int) -> Path:
        """Return the folder of ``step``."""
        return self.folder / f"step-{step:06d}"

    def save(self, checkpoint: Checkpoint, best: bool = False, write: WriteTensors = write_tensors) -> Path:
        """Write a checkpoint and return its folder; ``best`` also marks it as the one never to be pruned.

        ``write`` writes a file of tensors, waits until it is on the disk, and returns its sha256.

        Raises ``MachineError`` when the disk is full or not writable: earlier checkpoints are then untouched.
        """
        needed, target = checkpoint.bytes(), self.path(checkpoint.step)
        mark = f"{os.getpid()}-{secrets.token_hex(4)}"
        fresh = target.with_name(f"{target.name}.tmp-{mark}")
        with disk.machine_errors(fresh, needed, FEWER):
            if disk.free_bytes(self.folder) < needed:
                raise disk.no_room(target, needed, FEWER)
            try:
                fresh.mkdir()
                write_files(fresh, checkpoint, write)
                if target.exists():  # a damaged one that the run went past when it resumed
                    disk.replace(target, target.with_name(f"{target.name}.old-{mark}"))
                disk.replace(fresh, target)
            finally:
                disk.remove_tree(fresh)
            disk.fsync_folder(self.folder)
            if best:
                disk.write_text(self.folder / "best", target.name + "\n")
            disk.write_text(self.folder / "latest", target.name + "\n")
            disk.remove_tree(target.with_name(f"{target.name}.old-{mark}"))
            self.prune()
        return target

    def prune(self) -> None:
        """Remove all but the last ``keep`` checkpoints and the best."""
        best = self.best()
        for step in self.steps()[self.keep :]:
            if step != best:
                # The manifest goes first: a removal cut short must not leave a folder that looks complete.
                (self.path(step) / manifest.NAME).unlink(missing_ok=True)
                disk.remove_tree(self.path(step))

    def best(self) -> int | None:
        """Return the step of the best checkpoint, or None if no evaluation has chosen one."""
        try:
            match = FOLDER.fullmatch((self.folder / "best").read_text(encoding="utf-8").strip())
        except FileNotFoundError:
            return None
        return int(match[1]) if match else None

    def newest(self, warn: Callable[[str], None]) -> Checkpoint | None:
        """Return the newest sound checkpoint, or None if there is no checkpoint folder at all.

        The numbers in the folders' names decide, not ``latest`` or a clock. A damaged one is named through
        ``warn`` and the one before it is taken; if all are damaged the newest one's ``ModelFileError`` is
        raised, as it is, whatever else there is, when a checkpoint comes from a newer version.
        """
        first: ModelFileError | None = None
        for step in self.steps():
            try:
                return read_checkpoint(self.path(step))
            except manifest.NewerFormatError:
                raise
            except ModelFileError as error:
                warn(f"warning: {error.message}; the checkpoint before it is tried")
                first = first or error
        if first:
            raise first
        return None


def write_files(folder: Path, checkpoint: Checkpoint, write: WriteTensors = write_tensors) -> None:
    """Write and sync the files of a checkpoint, then its manifest, then the folder."""
    records = {}
    for name, tensors in checkpoint.files():
        digest = write(folder / name, tensors)
        records[name] = manifest.FileRecord((folder / name).stat().st_size, digest)
    state = {**checkpoint.state, "step": checkpoint.step}
    for name, content in ((STATE, state), (SPEC, checkpoint.spec)):
        write_synced(folder / name, json.dumps(content, indent=1) + "\n")
        records[name] = manifest.FileRecord((folder / name).stat().st_size, manifest.file_sha256(folder / name))
    write_synced(folder / manifest.NAME, manifest.manifest_text(records))
    disk.fsync_folder(folder)


def write_synced(path: Path, text: str) -> None:
    """Write a new file and wait until it is on the disk."""
    path.write_text(text, encoding="utf-8")
    disk.fsync_file(path)


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read one checkpoint folder after checking every byte against its manifest.

    Raises ``ModelFileError`` naming the file, its expected and its real size.
    """
    manifest.check_folder(folder, needed=(MODEL, OPTIMIZER, STATE, SPEC))
    state, spec = (json.loads((folder / name).read_text(encoding="utf-8")) for name in (STATE, SPEC))
    owned = read_tensors(folder / OBJECTIVE) if (folder / OBJECTIVE).exists() else {}
    model, optimizer = read_tensors(folder / MODEL), read_tensors(folder / OPTIMIZER)
    return Checkpoint(state["step"], model, optimizer, state, spec, owned)
