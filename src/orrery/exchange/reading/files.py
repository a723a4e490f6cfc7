"""Reading the files of a model folder: JSON objects and weights, in one file or in shards."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor

from orrery.checkpoints.json_file import read_json, refuse
from orrery.checkpoints.stand_ins import refuse_stand_in
from orrery.checkpoints.tensors import TensorEntry, TensorFile
from orrery.errors import ModelFileError
from orrery.exchange.reading.foreign import refuse_broken_links, refuse_foreign

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
CONFIG, GENERATION, CARD = "config.json", "generation_config.json", "README.md"
PICTURES, PROCESSOR = "preprocessor_config.json", "processor_config.json"
"""How pictures are prepared: a file of its own, or the part ``image_processor`` that transformers 5 nests in one."""
PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.ckpt")
PICKLE, PICKLE_INDEX = "pytorch_model.bin", "pytorch_model.bin.index.json"
_NO_WEIGHTS = re.compile(
    r"(optimizer|scheduler|scaler|training_args|sampler|dl_state_dict|meta|openvino_\w+)(_\d+)?\.\w+"
    r"|(rng_state|random_states)(_\d+)?\.\w+|.*_optim_states\.pt"
)
"""Files that trainers and other programs write beside the weights under such names."""
INDEX_LIMIT = 12_000_000
"""Bytes: the index of 92,000 tensors takes nine million."""
_SHARD = re.compile(r"\w[\w.-]*")
_NUMBERED = re.compile(r"model-\d{5}-of-(?P<all>\d{5})\.safetensors")


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
        return Weights(open_shards(folder, INDEX), current)
    if shards := _numbered(folder):
        return Weights([TensorFile(shard) for shard in shards], current)
    refuse_broken_links(folder)
    pickles = pickles_in(folder)
    if not any((folder / name).is_file() for name in (PICKLE, PICKLE_INDEX)):
        refuse_foreign(folder)
    if pickles:
        raise only_pickled(folder, pickles[0])
    raise ModelFileError(f"{folder / WEIGHTS} is missing", _called_otherwise(folder))


def only_pickled(folder: Path, pickle: Path) -> ModelFileError:
    """Return the error of a folder whose weights are in a pickle, unless that is a stand-in for one."""
    refuse_stand_in(pickle)
    return ModelFileError(
        f"{folder} has its weights only as {pickle.name}, a pickle, which can run any code",
        f"get the safetensors files of the same model, or: orrery import {folder} NEW_FOLDER --allow-pickle",
    )


def has_safetensors(folder: Path) -> bool:
    """Say whether the weights of a folder are in safetensors: in one file or in shards, with an index or without."""
    whole = any((folder / name).is_file() for name in (WEIGHTS, INDEX))
    return whole or any(_NUMBERED.fullmatch(path.name) for path in folder.glob("model-*.safetensors"))


def _numbered(folder: Path) -> list[Path]:
    """Return the shards of a folder without an index, by the numbers in their names; empty where there are none.

    Raises:
        ModelFileError: some are missing.
    """
    there = sorted(path for path in folder.glob("model-*.safetensors") if _NUMBERED.fullmatch(path.name))
    count = max((int(match["all"]) for path in there if (match := _NUMBERED.fullmatch(path.name))), default=0)
    shards = [folder / f"model-{number:05d}-of-{count:05d}.safetensors" for number in range(1, min(count, 10_000) + 1)]
    if missing := [path.name for path in shards if not path.is_file()]:
        raise _lacking(folder, missing, count, "the others are numbered for")
    return shards


def _lacking(folder: Path, missing: list[str], count: int, why: str) -> ModelFileError:
    return ModelFileError(
        f"{folder} lacks {len(missing)} of the {count} shards that {why}: {', '.join(missing[:10])}",
        "get the missing files from the source of the others",
    )


def _called_otherwise(folder: Path) -> str:
    """Return a hint that names weights with the mark of a variant, ``model.fp16.safetensors``, where there are some."""
    indices, files = sorted(folder.glob("*.safetensors.index*.json")), sorted(folder.glob("*.safetensors"))
    for path, name in [*((path, INDEX) for path in indices), *((path, WEIGHTS) for path in files)]:
        if not path.name.startswith("adapter_"):
            return f"if {path.name} holds them, rename it to {name}"
    return "is the folder complete?"


def pickles_in(folder: Path) -> list[Path]:
    """Return the files that may be pickles of weights, by name."""
    files = {path for pattern in PICKLES for path in folder.glob(pattern)}
    return sorted(path for path in files if not _NO_WEIGHTS.fullmatch(path.name))


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


def open_shards(folder: Path, index: str) -> list[TensorFile]:
    """Open the shards that an index names, and compare the names of their tensors with it."""
    places = read_index(folder / index)
    expected: dict[str, set[str]] = {}
    for name, shard in places.items():
        expected.setdefault(shard, set()).add(name)
    if missing := [shard for shard in sorted(expected) if not (folder / shard).is_file()]:
        raise _lacking(folder, missing, len(expected), "its index names")
    files = [TensorFile(folder / shard) for shard in sorted(expected)]
    for file in files:
        if wrong := sorted(file.keys() ^ expected[file.path.name]):
            raise ModelFileError(f"{file.path} and its index differ in {wrong[0]!r}", "get both again from one source")
    return files
