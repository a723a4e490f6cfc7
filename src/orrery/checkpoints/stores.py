"""Models that other programs keep, by the names that these have for them: ``ollama:NAME``, ``lmstudio:NAME``.

Of Ollama's the place is the manifest, a small file that lists what makes a model; of LM Studio's a GGUF file or a
folder. Nothing is fetched.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from orrery.checkpoints.json_file import read_json
from orrery.errors import ModelFileError, OrreryError, UsageError, did_you_mean
from orrery.settings import lm_studio_homes, ollama_stores

OLLAMA, LM_STUDIO = "ollama:", "lmstudio:"
MANIFESTS = "manifests"
_USUAL = ("registry.ollama.ai", "library", "latest")
_PART = r"[\w-][\w.-]{0,199}"  # a file of a longer name cannot be asked for
_NAME = re.compile(
    rf"(?:(?:(?P<host>{_PART}(?::\d+)?)/)?(?P<owner>{_PART})/)?(?P<model>{_PART})(?::(?P<tag>{_PART}))?", re.ASCII
)
_HERE = "orrery models lists what is on this machine"


def in_store(name: str) -> Path | None:
    """Return where the model lies that another program calls so; None for a name that begins otherwise.

    Raises:
        UsageError: a name of another form, or of several models.
        ModelFileError: there is no such model.
    """
    if name.startswith(OLLAMA):
        return _in_ollama(name)
    return _in_lm_studio(name) if name.startswith(LM_STUDIO) else None


def _in_ollama(name: str) -> Path:
    found = _NAME.fullmatch(name.removeprefix(OLLAMA))
    if found is None:
        raise UsageError(
            f"{name!r} is no name of Ollama's", "write ollama:model, ollama:model:tag or ollama:user/model"
        )
    host, owner, tag = (found[part] or usual for part, usual in zip(("host", "owner", "tag"), _USUAL, strict=True))
    stores = [store for store in ollama_stores() if os.access(store / MANIFESTS, os.R_OK | os.X_OK)]
    for store in stores:
        if (place := store / MANIFESTS / host / owner / found["model"] / tag).is_file():
            return place
    known = [ollama_name(manifest) for store in stores for manifest in manifests(store)]
    raise ModelFileError(
        f"Ollama has no {name.removeprefix(OLLAMA)} in {' or '.join(map(str, ollama_stores()))}",
        f"{did_you_mean(name, known)}{_HERE}; ollama pull fetches others",
    )


def manifests(store: Path) -> list[Path]:
    """Return the manifests of a store of Ollama's; one may be damaged.

    Raises:
        OSError: the store may not be read.
    """
    if not os.path.lexists(store / MANIFESTS):
        return []
    os.listdir(store / MANIFESTS)  # else it would seem empty where rights are missing
    files = (store / MANIFESTS).glob("*/*/*/*")
    return sorted(file for file in files if not file.is_dir() and not file.name.startswith("."))


def is_manifest(path: Path) -> bool:
    """Say whether a path is a manifest of Ollama's, by where it lies."""
    return len(path.parts) >= 5 and path.parts[-5] == MANIFESTS and not path.is_dir()


def ollama_name(manifest: Path) -> str:
    """Return what Ollama calls the model of a manifest, as ``ollama:NAME``."""
    return f"{OLLAMA}{short_name(manifest)}"


def short_name(manifest: Path) -> str:
    """Return what Ollama calls the model of a manifest, without what it takes for granted."""
    *before, model, tag = manifest.parts[-4:]
    usual = list(_USUAL[:2])
    while before and before[0] == usual[0]:
        del before[0], usual[0]
    return "/".join([*before, model]) + ("" if tag == _USUAL[2] else f":{tag}")


def lm_studio_folders() -> list[Path]:
    """Return the folders where LM Studio keeps models, as its settings say, else beside them."""
    folders = []
    for home in lm_studio_homes():
        try:
            said = read_json(home / "settings.json").get("downloadsFolder")
        except OrreryError:
            said = None
        folders += [Path(said)] if isinstance(said, str) and said else []
        folders.append(home / "models")
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def lm_studio_models() -> Iterator[tuple[str, Path]]:
    """Yield LM Studio's models by name: folders of one GGUF or of MLX, else each GGUF file of a folder."""
    for folder in lm_studio_folders():
        for place in sorted(place for place in folder.glob("*/*") if place.is_dir()):
            name = f"{LM_STUDIO}{place.parent.name}/{place.name}"
            files = gguf_files(place)
            if len(files) > 1:
                yield from ((f"{name}/{file.name}", file) for file in files)
            elif files or (place / "config.json").is_file():
                yield name, files[0] if files else place


def gguf_files(folder: Path) -> list[Path]:
    """Return the GGUF files of a folder: of a split model the first, and none that only prepares pictures."""
    files = sorted(folder.glob("*.gguf"))
    later = re.compile(r"-(?!00001)\d{5}-of-\d{5}\.gguf$")
    return [file for file in files if not file.name.startswith("mmproj") and not later.search(file.name)]


def _in_lm_studio(name: str) -> Path:
    known = dict(lm_studio_models())
    if name in known:
        return known[name]
    if several := [one for one in known if one.startswith(f"{name}/")]:
        raise UsageError(f"{name} has {len(several)} models", f"name one of them: {', '.join(several[:10])}")
    raise ModelFileError(f"LM Studio has no {name.removeprefix(LM_STUDIO)}", f"{did_you_mean(name, known)}{_HERE}")
