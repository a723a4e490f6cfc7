"""Where a model lies: a path, or a run by its name alone; told before anything that takes time is imported."""

import os
from pathlib import Path

from orrery.checkpoints.stores import in_store
from orrery.errors import ModelFileError, did_you_mean
from orrery.settings import runs_folder

HUB = "hf:"
WANTED = "give a run, a checkpoint, a Hugging Face folder or a GGUF file"


def place_of(model: str | Path) -> str | Path:
    """Return the path that a model's name means.

    Args:
        model: a path, ``hf:org/name``, ``ollama:name``, ``lmstudio:publisher/name``, or the name of a run in the folder
            of runs; a path goes before a run.

    Raises:
        ModelFileError: there is none of these.
    """
    if str(model).startswith(HUB) or _exists(Path(model)):
        return model
    name = str(model)
    if (kept := in_store(name)) is not None:
        return kept
    if is_name(name) and _exists(runs_folder() / name):
        return runs_folder() / name
    raise ModelFileError(f"{model} does not exist", f"{_near(name)}{WANTED}")


def is_name(text: str) -> bool:
    """Say whether a text is one name, and no path of several."""
    return text not in ("", ".", "..") and not any(part in text for part in (os.sep, os.altsep or os.sep, "\0"))


def _near(name: str) -> str:
    """Return the beginning of the hint: a run that is spelled nearly so."""
    try:
        runs = [entry.name for entry in runs_folder().iterdir() if entry.is_dir()]
    except OSError:
        return ""
    return did_you_mean(Path(name).name, sorted(runs))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long, or with a zero byte
        return False
