"""Reading the files of a model folder: JSON objects and weights, in one file or in shards."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor

from orrery.checkpoints.json_file import read_json, refuse
from orrery.checkpoints.tensors import TensorEntry, TensorFile
from orrery.errors import ModelFileError

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
CONFIG, GENERATION, CARD = "config.json", "generation_config.json", "README.md"
PICTURES = "preprocessor_config.json"
PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
INDEX_LIMIT = 12_000_000
"""Bytes: the index of 92,000 tensors takes nine million."""
_SHARD = re.compile(r"\w[\w.-]*")


class Weights(Mapping[str, Tensor]):
    """The tensors of a folder: all headers are read and checked, each tensor is read when it is asked for.

    Attributes:
        method: what the matrices were rounded by: here nothing.
    """

    method: str | None = None

    def __init__(self, files: list[TensorFile], current: Callable[[str], str] = str) -> None:
        self._files = {current(name): (file, name) for file in files for name in file}
        if len(self._files) < sum(map(len, files)):
            raise ModelFileError("two tensors of the files are one of the model", "get the files again")

    def renamed(self, current: Callable[[str], str | None]) -> "Weights":
        """Return the tensors under other names, without those for which ``current`` returns none."""
        files = {now: place for name, place in self._files.items() if (now := current(name)) is not None}
        if len(files) < sum(current(name) is not None for name in self):
            raise ModelFileError("two tensors of the files are one of the model", "get the files again")
        renamed = Weights([])
        renamed._files = files
        return renamed

    def __getitem__(self, name: str) -> Tensor:
        file, stored = self._files[name]
        return file[stored]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    @property
    def format(self) -> str | None:
        """What the files say of the library that they are for: ``pt``, ``mlx``, or nothing."""
        return next((file.metadata.get("format") for file, _ in self._files.values()), None)

    @property
    def elements(self) -> int:
        """How many numbers there are."""
        return sum(math.prod(self.entry(name).shape) for name in self)

    def empty(self) -> dict[str, Tensor]:
        """Return all tensors on the meta device: shapes and dtypes without a byte read."""
        entries = ((name, self.entry(name)) for name in self)
        return {name: torch.empty(entry.shape, dtype=entry.dtype, device="meta") for name, entry in entries}

    def entry(self, name: str) -> TensorEntry:
        """Return where a tensor lies, with its shape and dtype."""
        file, stored = self._files[name]
        return file.entries[stored]


def open_weights(folder: Path, current: Callable[[str], str] = str) -> Weights:
    """Open the weights of a folder, in ``model.safetensors`` or in the shards that its index names.

    ``current`` says what a tensor is called now that the files call by an earlier name.

    Raises:
        ModelFileError: files are missing or damaged, or the folder has weights of a kind that is never loaded.
    """
    if (folder / WEIGHTS).is_file():
        return Weights([TensorFile(folder / WEIGHTS)], current)
    if (folder / INDEX).is_file():
        return Weights(_open_shards(folder), current)
    if pickles := pickles_in(folder):
        raise ModelFileError(
            f"{folder} has its weights only as {pickles[0].name}, a pickle, which can run any code",
            f"get the safetensors files of the same model, or: orrery import {folder} NEW_FOLDER --allow-pickle",
        )
    raise ModelFileError(f"{folder / WEIGHTS} is missing", _called_otherwise(folder))


def _called_otherwise(folder: Path) -> str:
    """Return a hint that names weights with the mark of a variant, ``model.fp16.safetensors``, where there are some."""
    indices, files = sorted(folder.glob("*.safetensors.index*.json")), sorted(folder.glob("*.safetensors"))
    for path, name in [*((path, INDEX) for path in indices), *((path, WEIGHTS) for path in files)]:
        if not path.name.startswith("adapter_"):
            return f"if {path.name} holds them, rename it to {name}"
    return "is the folder complete?"


def pickles_in(folder: Path) -> list[Path]:
    """Return the files that may be pickles, by name."""
    return sorted({path for pattern in PICKLES for path in folder.glob(pattern)})


def read_index(path: Path, suffix: str = ".safetensors") -> dict[str, str]:
    """Return which shard holds each tensor.

    Raises:
        ModelFileError: the index is damaged, or a shard is no file in the same folder with this suffix.
    """
    places = read_json(path, INDEX_LIMIT).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(shard, str) for shard in places.values()):
        refuse(path, "has no weight_map")
    for shard in sorted(set(places.values())):
        if not _SHARD.fullmatch(shard) or Path(shard).suffix != suffix:
            raise ModelFileError(f"{path} names the shard {shard!r}", "a shard is a file name in the same folder")
    return places


def _open_shards(folder: Path) -> list[TensorFile]:
    """Open the shards and compare their names with the index."""
    places = read_index(folder / INDEX)
    expected: dict[str, set[str]] = {}
    for name, shard in places.items():
        expected.setdefault(shard, set()).add(name)
    if missing := [shard for shard in sorted(expected) if not (folder / shard).is_file()]:
        count = f"{len(missing)} of the {len(expected)} shards"
        raise ModelFileError(
            f"{folder} lacks {count} that its index names: {', '.join(missing[:10])}",
            "get the missing files from the source of the others",
        )
    files = [TensorFile(folder / shard) for shard in sorted(expected)]
    for file in files:
        if wrong := sorted(file.keys() ^ expected[file.path.name]):
            raise ModelFileError(f"{file.path} and its index differ in {wrong[0]!r}", "get both again from one source")
    return files
