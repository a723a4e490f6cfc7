"""Reading the files of a model folder: JSON objects and weights, in one file or in shards."""

import json
import re
from pathlib import Path
from typing import Any

from torch import Tensor

from orrery.checkpoints.tensors import read_tensors
from orrery.errors import ModelFileError

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
CONFIG, GENERATION, CARD = "config.json", "generation_config.json", "README.md"
_SHARD = re.compile(r"[\w][\w.-]*\.safetensors")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object.

    Raises:
        ModelFileError: the file is missing, not UTF-8, not JSON, or not an object.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ModelFileError(f"{path} is missing", "is the folder complete?") from error
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is not JSON: {error}", "get the file again from its source") from error
    if not isinstance(content, dict):
        raise ModelFileError(f"{path} holds no JSON object", "get the file again from its source")
    return content


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read all tensors of a folder, from ``model.safetensors`` or from the shards that its index names.

    Raises:
        ModelFileError: files are missing or damaged, or the folder has weights of a kind that is never loaded.
    """
    if (folder / WEIGHTS).is_file():
        return read_tensors(folder / WEIGHTS)
    if (folder / INDEX).is_file():
        return _read_shards(folder)
    pickles = sorted(path.name for path in folder.glob("*.bin")) + sorted(path.name for path in folder.glob("*.pt*"))
    if pickles:
        raise ModelFileError(
            f"{folder} has its weights only as {pickles[0]}, a pickle, which can run any code",
            "get the safetensors files of the same model",
        )
    raise ModelFileError(f"{folder / WEIGHTS} is missing", "is the folder complete?")


def _read_shards(folder: Path) -> dict[str, Tensor]:
    """Read the shards and compare their names with the index."""
    places = read_json(folder / INDEX).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(shard, str) for shard in places.values()):
        raise ModelFileError(f"{folder / INDEX} has no weight_map", "get the file again from its source")
    tensors: dict[str, Tensor] = {}
    for shard in sorted(set(places.values())):
        if not _SHARD.fullmatch(shard):
            raise ModelFileError(
                f"{folder / INDEX} names the shard {shard!r}", "a shard is a file name in the same folder"
            )
        found = read_tensors(folder / shard)
        expected = {name for name, place in places.items() if place == shard}
        if found.keys() != expected:
            wrong = sorted(found.keys() ^ expected)[0]
            raise ModelFileError(
                f"{folder / shard} and its index differ in {wrong!r}", "get both again from one source"
            )
        tensors |= found
    return tensors
