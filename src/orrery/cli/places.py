"""What is read: models, recipes, data and files, looked for before torch is imported."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from inspect import BoundArguments, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orrery.checkpoints.places import is_name, place_of
from orrery.checkpoints.stores import LM_STUDIO, OLLAMA
from orrery.data.rows.ranges import images_of_part, in_range, is_listed_part
from orrery.errors import DataError, ModelFileError, UsageError
from orrery.text.kinds import CHATS, no_chat

if TYPE_CHECKING:
    from orrery.recipes.config import Recipe

RECIPES = (".yaml", ".yml")


@dataclass(frozen=True)
class NamedPath:
    """A mark of a parameter: what it names is looked for once the command line as a whole can be meant.

    ``check`` returns a word as the verb takes it, or refuses it.
    """

    check: Callable[[str], str]

    def located(self, value: Any) -> Any:
        """Return a value, or each of several, as `check` gives it."""
        if isinstance(value, tuple | list):
            return type(value)(self.located(one) for one in value)
        return None if value is None else type(value)(self.check(str(value)))


def look_for_places(verb: Callable[..., Any], given: BoundArguments) -> None:
    """Replace what a command line names by where it lies.

    Raises:
        OrreryError: something is not there.
    """
    for name, parameter in signature(verb).parameters.items():
        for mark in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(mark, NamedPath) and name in given.arguments:
                given.arguments[name] = mark.located(given.arguments[name])


def _model(word: str) -> str:
    return str(place_of(word))


def _model_or_recipe(word: str) -> str:
    if not word.endswith(RECIPES):
        return _model(word)
    if not Path(word).is_file():
        hint = "give the path of a recipe, a YAML file like those in recipes/, or a model"
        raise UsageError(f"cannot read the recipe {word}: there is no such file", hint)
    return word


def _draft(word: str) -> str:
    return word if word == "lookup" else _model(word)


def _model_if_path(word: str) -> str:
    """Return a word as it is, where it may be a name; a path, a recipe or what a program keeps has to be there."""
    kept = word.startswith((OLLAMA, LM_STUDIO))
    return word if is_name(word) and not kept and not word.endswith(RECIPES) else _model_or_recipe(word)


def _data(word: str) -> str:
    """Return a file, a folder or a named set, once it is known that it is one.

    Raises:
        DataError: it is none; the named sets are told.
    """
    name, *_ = in_range(word)
    if not Path(name).exists() and images_of_part(name) is None and not is_listed_part(name):
        from orrery.data import generated, sets
        from orrery.data.corpora import PYTHON_DOCS, locate

        first = name.partition("/")[0]
        if first not in (PYTHON_DOCS, *sets.SETS, *generated.names()):
            locate(name)
    return word


def _task_or_recipe(word: str) -> str:
    return _model_or_recipe(word) if word.endswith(RECIPES) else word


def _run_or_path(word: str) -> str:
    """Return where a run of this name lies, or a word as it is: what reads it says what is wrong with it."""
    try:
        return _model(word)
    except ModelFileError:
        return word


def _evidence(word: str) -> str:
    if not Path(word).is_file():
        raise DataError(f"{word}: no such file", "orrery verify --json FILE writes such a file")
    return word


def _picture(word: str) -> str:
    if not Path(word).is_file():
        what = "is a folder" if Path(word).is_dir() else "no such file"
        raise DataError(f"{word}: {what}", "give the path of a picture file")
    return word


def _template(word: str) -> str:
    if word not in CHATS and not Path(word).is_file():
        raise no_chat(word)
    return word


MODEL, MODEL_OR_RECIPE, MODEL_IF_PATH = NamedPath(_model), NamedPath(_model_or_recipe), NamedPath(_model_if_path)
TASK_OR_RECIPE, RUN_OR_PATH, DRAFT = NamedPath(_task_or_recipe), NamedPath(_run_or_path), NamedPath(_draft)
DATA, EVIDENCE, TEMPLATE = NamedPath(_data), NamedPath(_evidence), NamedPath(_template)
PICTURE = NamedPath(_picture)


def check_adapters(folders: dict[str, str]) -> dict[str, str]:
    """Return the folders of adapters, all of which are there.

    Raises:
        ModelFileError: one is not.
    """
    for folder in folders.values():
        if not Path(folder).is_dir():
            raise ModelFileError(f"{folder} is no folder", "give the folder of a LoRA, with adapter_config.json in it")
    return folders


def check_places(recipe: "Recipe") -> None:
    """Look for the data that a recipe names, and for the models that it begins from.

    Raises:
        DataError, ModelFileError: one is not there.
    """
    for model in (recipe.model.begin, recipe.model.encoder):
        if model is not None:
            place_of(model)
    for word in sources(recipe.data.model_dump(mode="json")):
        _data(word)


def sources(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield the files, folders and named sets of a recipe's section of data."""
    for key in ("train", "val", "pairs"):
        source = data.get(key)
        yield from (
            one for one in (source.values() if isinstance(source, Mapping) else [source]) if isinstance(one, str)
        )
    for part in data.get("mixture") or ():
        yield part["train"]
