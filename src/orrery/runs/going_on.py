"""Going on with a run: where it lies, and what of its recipe was found for it and not asked for."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, suppress
from pathlib import Path
from typing import Any

from orrery.checkpoints.json_file import read_json
from orrery.errors import ModelFileError, UsageError
from orrery.recipes.config import Recipe
from orrery.recipes.read import check_recipe, flatten, overridden, plain, read_yaml, set_dotted, words_of
from orrery.training.folder import CONFIG, RUN

FOUND = ("batches", "training", "evaluation", "checkpoints", "logging")
"""Sections that are found from the data and from the steps, where a verb makes the recipe."""
FOUND_FOR_A_TEXT = ("model", "tokenizer", "data.split", *FOUND)
"""What is found where a text alone is given."""
FOUND_FOR_ANSWERS = tuple(f"data.{key}" for key in ("max_new_tokens", "samples", "minibatches", "passes")) + FOUND
"""What is found where a model learns from its own answers."""
KIND = "kind"


def asked_for(overrides: Sequence[str], environment: Mapping[str, str] | None = None) -> Collection[str]:
    """Return the dotted keys that flags and the environment set."""
    return flatten(overridden({}, overrides, environment)).keys()


def run_at(named: Path) -> Path | None:
    """Return the folder of the run that a path means: that folder, or the ``config.yaml`` in it; nothing if none."""
    folder = named.parent if named.name == CONFIG else named
    return folder if (folder / RUN).is_file() and (folder / CONFIG).is_file() else None


def folder_of(named: Path, output: Path | None) -> Path | None:
    """Return the folder of the run that a path means, to go on with there; nothing where it means a recipe or a text.

    Raises:
        UsageError: it is a run, and ``output`` is another folder.
    """
    run = run_at(named)
    if run is None or output is None or output.resolve() == run.resolve():
        return run
    if named.name == CONFIG:  # the recipe of a run, for another one
        return None
    message = f"{named} is a run that goes on in its own folder, and --output names {output}"
    raise UsageError(message, f"leave --output out, or give {named / CONFIG} as the recipe of another run")


@contextmanager
def where_begun(home: Path | None, say: Callable[[str], object]) -> Iterator[None]:
    """Go on with a run in the folder that it was begun from: relative paths of its recipe mean what they did.

    The working folder is taken where that folder is gone, or has fewer of the recipe's paths, as when a project was
    moved, or where a run of an earlier version does not name it.

    Args:
        home: of the run; without one nothing is done.
        say: told the folder, where it is another one.
    """
    begun = None if home is None else _begun_in(home)
    if begun is None:
        yield
        return
    say(f"relative paths are those of {begun}, where the run was begun")
    with chdir(begun):
        yield


def _begun_in(home: Path) -> Path | None:
    """Return the folder that a run was begun from, where its paths are to be looked for there."""
    with suppress(OSError, ValueError, UsageError, ModelFileError):
        begun = Path(str(read_json(home / RUN).get("folder") or home / RUN))
        here = Path.cwd()
        words = words_of(check_recipe(read_yaml(home / CONFIG), str(home / CONFIG)))
        if begun.is_dir() and not begun.samefile(here) and _there(words, begun) >= _there(words, here):
            return begun
    return None


def _there(words: Sequence[str], folder: Path) -> int:
    """Return how many of the words are paths in a folder."""
    count = 0
    for word in words:
        with suppress(OSError, ValueError):  # a text that can be no path
            count += (folder / word).exists()
    return count


def as_begun(recipe: Recipe, folder: Path, named_keys: Collection[str], sections: Collection[str] = FOUND) -> Recipe:
    """Return the recipe of a run that goes on: what was found for it stays as it is, whatever is found now.

    The warm-up follows from the steps where nobody names one: of a run of more steps it would be another one, and a run
    goes on with what it began with.

    Args:
        recipe: as it is found now, with what is asked for.
        folder: of the run; where there is none, the recipe is returned.
        named_keys: dotted keys that are asked for: they are as in ``recipe``.
        sections: those that were found, or dotted parts of some.
    """
    if run_at(folder) is None:
        return recipe
    saved, values = plain(check_recipe(read_yaml(folder / CONFIG), str(folder / CONFIG))), plain(recipe)
    now = flatten(values)
    for section in sections:
        if (before := _at(saved, section)) is not None or _at(values, section) is not None:
            set_dotted(values, section, before)
    for key in named_keys:
        section_key = key.rpartition(".")[0] if key.rpartition(".")[2] == KIND else key
        if key in now and any(f"{section_key}.".startswith(f"{section}.") for section in sections):
            set_dotted(values, section_key, _at(plain(recipe), section_key))
    return check_recipe(values, str(folder))


def _at(values: Mapping[str, Any], key: str) -> Any:
    """Return what stands at a dotted key; nothing where nothing does."""
    value: Any = values
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
