"""Reading a model from a folder: a Hugging Face folder, a checkpoint, or a run, which holds both."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from orrery.checkpoints import manifest
from orrery.checkpoints.store import FOLDER as CHECKPOINT
from orrery.checkpoints.store import MODEL, SPEC, CheckpointStore
from orrery.errors import ModelFileError, UsageError
from orrery.families import current_names, load_family, rules_of
from orrery.loading.files import CONFIG, GENERATION, read_json, read_weights
from orrery.loading.weights import build_empty, fill, from_theirs
from orrery.models.assemblies import Assembly
from orrery.nn.spec import from_json
from orrery.text import Tokenizer, load_tokenizer

CHECKPOINTS, FINAL, RECIPE = "checkpoints", "final", "config.yaml"


@dataclass(frozen=True)
class Stored:
    """What a folder holds.

    Attributes:
        folder: where it was found.
        model: in eval mode, on the CPU, in the file's dtypes.
        family: the ``model_type``, where the folder or its run names one.
        config: the family's configuration.
        generation: the content of ``generation_config.json``.
        tokenizer: where there is one.
    """

    folder: Path
    model: Assembly
    family: str | None = None
    config: Mapping[str, Any] | None = None
    generation: Mapping[str, Any] = field(default_factory=dict)
    tokenizer: Tokenizer | None = None


def read(path: str | Path, say: Callable[[str], None] = lambda line: None) -> Stored:
    """Read the model at a path.

    Args:
        path: a run (its final model, else its best checkpoint, else its newest), a checkpoint, or a Hugging Face
            folder.
        say: told which of a run's models was taken.

    Raises:
        UsageError: a hub id.
        ModelFileError: there is no model, or its files are damaged or do not fit each other.
    """
    folder = locate(path, say)
    stored = _read_checkpoint(folder) if (folder / SPEC).is_file() else _read_published(folder)
    stored.model.eval()
    return stored


def locate(path: str | Path, say: Callable[[str], None] = lambda line: None) -> Path:
    """Return the folder with the weights that a path means."""
    if str(path).startswith("hf:"):
        raise UsageError(f"{path}: models from the hub are not fetched yet", "download the folder and give its path")
    folder = Path(path)
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise ModelFileError(f"{folder} {what}", "give a run, a checkpoint or a Hugging Face folder")
    if _has_model(folder):
        return folder
    if _has_model(folder / FINAL):
        say(f"{folder}: the final model")
        return folder / FINAL
    store = CheckpointStore(folder / CHECKPOINTS if (folder / CHECKPOINTS).is_dir() else folder)
    best, steps = store.best(), store.steps()
    if not steps:
        raise ModelFileError(
            f"{folder} has neither config.json nor checkpoints",
            "give a run, a checkpoint or a Hugging Face folder",
        )
    step, kind = (best, "best") if best in steps else (steps[0], "newest")
    say(f"{folder}: the {kind} checkpoint, step {step}")
    return store.path(step)


def _has_model(folder: Path) -> bool:
    return (folder / CONFIG).is_file() or (folder / SPEC).is_file()


def _read_published(folder: Path) -> Stored:
    """Read a Hugging Face folder."""
    config = read_json(folder / CONFIG)
    family = config.get("model_type")
    rules = load_family(family)
    model = build_empty(rules.spec(config))
    theirs = current_names(rules, config, read_weights(folder))
    fill(model, from_theirs(model, theirs, rules_of(rules, config)))
    generation = read_json(folder / GENERATION) if (folder / GENERATION).is_file() else {}
    return Stored(folder, model, family, config, generation, _tokenizer(folder))


def _read_checkpoint(folder: Path) -> Stored:
    """Read weights under our own names, and what the run around them says of the family.

    Every byte is compared with the manifest, without which a checkpoint's folder is not accepted; the final model of
    an architecture outside the families has none.
    """
    if CHECKPOINT.fullmatch(folder.name) or (folder / manifest.NAME).is_file():
        manifest.check_folder(folder, needed=(MODEL, SPEC))
    model = build_empty(from_json(read_json(folder / SPEC)))
    fill(model, read_weights(folder))
    run = folder.parent if folder.name == FINAL else folder.parent.parent
    recipe = _recipe(run).get("model") or {}
    # A recipe may leave the vocabulary to the tokenizer; the model knows which size that was.
    config = {"vocab_size": model.spec.embed.vocabulary, **(recipe.get("config") or {})}
    return Stored(folder, model, recipe.get("family"), config, {}, _tokenizer(folder, run, run / FINAL))


def _tokenizer(*folders: Path) -> Tokenizer | None:
    """Return the first tokenizer in these folders."""
    for folder in folders:
        if (folder / "tokenizer.json").is_file():
            return load_tokenizer(folder)
    return None


def _recipe(run: Path) -> dict[str, Any]:
    """Return the resolved recipe of a run; a checkpoint may have left its run."""
    path = run / RECIPE
    if not path.is_file():
        return {}
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise ModelFileError(f"{path} is not YAML: {error}", "a run writes this file itself; restore it") from error
    return content if isinstance(content, dict) else {}
