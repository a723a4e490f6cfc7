"""Where a model lies: a path, or a run by its name alone; told before anything that takes time is imported."""

import os
import re
from pathlib import Path

from orrery.checkpoints.stores import in_store
from orrery.errors import ModelFileError, did_you_mean
from orrery.settings import runs_folder

HUB = "hf:"
WANTED = "give a run, a checkpoint, a Hugging Face folder or a GGUF file"
_OF_THE_HUB = re.compile(
    r"(?P<address>(?:hf:)?(?:https?://)?(?:www\.)?(?:huggingface\.co|hf\.co)/|hf:/*)?(?P<name>[\w-][\w.-]*/[\w.-]+?)"
    r"(?:/(?:tree|blob|resolve|raw)/(?P<revision>[\w.-]+)(?:/(?P<file>[^?#]+))?)?(?::[\w.-]+)?/?(?:[?#].*)?"
)
"""A model on the hub as people write it: the address of its page or of a file of its, or its name alone."""
_OF_OLLAMA = re.compile(r"(?:ollama:)?[\w.-]+(?::[\w.-]+)?")


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
    raise ModelFileError(f"{name.strip()} does not exist", _meant(name) or f"{_near(name)}{WANTED}{_at_the_hub(name)}")


def hub_name(text: str) -> str | None:
    """Return the ``hf:org/name`` that an address or a name of the hub means; None for other texts."""
    found = _OF_THE_HUB.fullmatch(text)
    if found is None:
        return None
    return f"{HUB}{found['name']}" + (f"@{found['revision']}" if found["revision"] not in (None, "main") else "")


def _meant(name: str) -> str | None:
    """Return the hint for a name of another form than Orrery takes; None where no such form is known."""
    found = _OF_THE_HUB.fullmatch(name)
    if name != (bare := name.strip()) and _exists(Path(bare)):
        return "there is one without the blank or line break at the end of the name"
    if name.startswith("~/"):
        return f"only a shell knows what ~ is: write {Path(name).expanduser()}"
    if found and (found["file"] or "").endswith(".gguf"):
        return f"fetch the file, hf download {found['name']} {found['file']} --local-dir FOLDER, and name it"
    if found and found["address"]:
        return f"a model on the hub is written {hub_name(name)}"
    if "://" in name or name.startswith("git@"):
        return f"fetch it first, and name the folder or the file: of addresses only {HUB}org/name is opened"
    if ":" in name and _OF_OLLAMA.fullmatch(name):
        return f"write ollama:{name.removeprefix('ollama:')} where that is Ollama's; orrery models lists what is here"
    return None


def is_name(text: str) -> bool:
    """Say whether a text is one name, and no path of several."""
    return text not in ("", ".", "..") and not any(part in text for part in (os.sep, os.altsep or os.sep, "\0"))


def _at_the_hub(name: str) -> str:
    """Return the end of the hint: what a name of two parts may be, where no folder has the name of the first."""
    named = hub_name(name) if not _exists(Path(name).parent) else None
    return f"; of a model on the hub write {named}" if named else ""


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
