"""Reading a recipe: a YAML file, over it ``ORRERY_*`` from the environment, over both dotted flags."""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from orrery.checkpoints import strict_yaml
from orrery.checkpoints.strict_yaml import read_text
from orrery.errors import UsageError
from orrery.recipes.config import Recipe
from orrery.schema.keys import Known
from orrery.schema.other_names import called_elsewhere
from orrery.schema.section import Section
from orrery.schema.unknown import UnknownSettingError
from orrery.settings import PREFIX, overriding

LADDER = "ladder"
"""The section of a recipe that is trained in several sizes."""
# What may differ when a run is continued: how long, and how it is watched and kept, but not what is learned.
# A base may have moved: every weight comes from the checkpoint. The device that it went on is asked for again there.
# Any number of processes learns the same.
FREE_ON_RESUME = (
    "training.steps",
    "training.device",
    "training.final",
    "parallel.",
    "evaluation.",
    "checkpoints.",
    "logging.",
    "expect",
    "name",
    "task",
    "model.from",
)


SUCH_AS = {
    "name": "first",
    "model": "{family: gpt2, config: {n_layer: 2, n_head: 2, n_embd: 64}}; tokenizer: {kind: character}",
    "data": "{train: notes.txt}",
    "batches": "{kind: crops, length: 64, size: 16}",
    "training": "{steps: 500, optimizer: {kind: adamw, rate: 1.0e-3}}",
}
"""What a recipe cannot do without, as it may be written."""

AnyRecipe = TypeVar("AnyRecipe", bound=Section)


def load_recipe(path: Path, overrides: Sequence[str] = (), environment: Mapping[str, str] | None = None) -> Recipe:
    """Read the recipe of a model at ``path``; see `load_as`."""
    return load_as(Recipe, path, overrides, environment)


def load_as(
    schema: type[AnyRecipe], path: Path, overrides: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> AnyRecipe:
    """Read the recipe at ``path`` with its overrides; flags win over the environment, and that over the file.

    ``overrides`` are words of a command line (``--training.steps 5`` or ``--training.steps=5``), environment
    names have ``__`` for the dot (``ORRERY_TRAINING__STEPS=5``). Values are YAML. Raises ``UsageError``
    naming the dotted key.
    """
    values = read_yaml(path)
    if LADDER in values:
        raise UsageError(f"{path} is a scaling ladder, of several trainings", f"`orrery ladder {path}` carries it out")
    return check_as(schema, overridden(values, overrides, environment, schema), str(path))


def overridden(
    values: dict[str, Any],
    overrides: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    schema: type[Section] = Recipe,
    beside: Collection[str] = (),
) -> dict[str, Any]:
    """Return a recipe's values with what the environment and, over it, flags change.

    ``beside`` are sections that the recipe may have beside those of the schema.
    """
    for source in (
        from_environment(environment or {}),
        from_flags(overrides, {*schema.model_fields, *beside}, (schema,)),
    ):
        for key, text in source:
            set_dotted(values, key, parse_value(key, text))
    return values


def check_recipe(values: Mapping[str, Any], source: str) -> Recipe:
    """Build the recipe of a model from plain values; see `check_as`."""
    return check_as(Recipe, values, source)


def check_as(schema: type[AnyRecipe], values: Mapping[str, Any], source: str) -> AnyRecipe:
    """Build a recipe from plain values; raise ``UsageError`` naming the bad dotted keys."""
    try:
        return schema.model_validate(values)
    except ValidationError as error:
        # A key that there is not is told before one that is missing: often it was meant for that.
        errors = sorted(error.errors(), key=lambda each: (each["type"] != "unknown_key", each["type"] == "missing"))
        first, keys = errors[0], [_key(values, each) for each in errors]
        missing = [key for key, each in zip(keys, errors, strict=True) if each["type"] == "missing"]
        told = missing if first["type"] == "missing" else keys[:1]
        said = first["msg"].removeprefix("Value error, ")
        if first["type"] == "unknown_key" and (name := called_elsewhere(keys[0], Known(schemas=(schema,)))):
            said = f"unknown key; did you mean {name!r}?"
        more = f"; mend also {', '.join(keys[len(told) :][:8])}" if len(told) < len(keys) else ""
        message = ": ".join(filter(None, (source, ", ".join(told[:8]), f"{said}{more}")))
        hint = "the training guide lists every key of a recipe"
        raise UsageError(message, f"{hint}{_such_as(missing) if schema is Recipe else ''}") from error


def _key(values: Mapping[str, Any], error: Any) -> str:
    """Return the key of an error as the user wrote it, cut where it is long."""
    return dotted_key(values, error["loc"], error.get("ctx", {}).get("key"))[:200]


def _such_as(missing: Sequence[str]) -> str:
    """Return what can be written for the sections that are missing, or that lack something."""
    sections = [name for name in dict.fromkeys(key.partition(".")[0] for key in missing) if name in SUCH_AS]
    return "; for instance: " + "; ".join(f"{name}: {SUCH_AS[name]}" for name in sections) if sections else ""


def dotted_key(values: Any, location: Sequence[int | str], extra: str | None) -> str:
    """Turn pydantic's location into the key as the user wrote it: without the tags of the chosen kinds."""
    parts = []
    for index, part in enumerate(location):
        here = isinstance(values, Mapping) and part in values
        missing = extra is None and index == len(location) - 1
        if here or missing or isinstance(part, int):
            parts.append(str(part))
        # A tag is no key of the file: what follows it lies where the tag was chosen.
        if here or (isinstance(part, int) and isinstance(values, list) and part < len(values)):
            values = values[part]
    return ".".join([*parts, *([extra] if extra else [])])


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML file that holds one mapping."""
    hint = "give the path of a recipe, a YAML file like those in recipes/, or of a text"
    try:
        content = strict_yaml.parse(read_text(path, strict_yaml.SIZE))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the recipe {path}: {error}", hint) from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise UsageError(f"{where}: not YAML: {getattr(error, 'problem', None) or error}", hint) from error
    if not isinstance(content, dict):
        raise UsageError(f"{path} holds no mapping of keys to values", hint)
    return content


def from_environment(environment: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Return the dotted keys that the environment sets: those with a double underscore, and the seed."""
    for name, value in overriding(environment):
        yield name.removeprefix(PREFIX).lower().replace("__", "."), value


def from_flags(
    words: Sequence[str], sections: Collection[str], schemas: Sequence[type[Section]] = ()
) -> Iterable[tuple[str, str]]:
    """Return the dotted keys of ``--a.b value`` and ``--a.b=value``; without a dot, only those of ``sections``.

    Raises:
        UnknownSettingError: another flag; what may have been meant is among the keys of ``schemas``.
        UsageError: a word that is no flag, or a flag without a value.
    """
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or word == "--":
            raise UsageError(f"unexpected argument {word!r}", "overrides look like --training.steps 5")
        key, equals, value = word.removeprefix("--").partition("=")
        if "." not in key and key not in sections:
            raise UnknownSettingError(
                f"--{key}", Known(schemas=schemas), "a recipe's keys look like --training.steps 5"
            )
        if not equals:
            if not rest:
                raise UsageError(f"{word} needs a value", f"write {word} VALUE")
            value = rest.pop(0)
        yield key.replace("-", "_"), value


def parse_value(key: str, text: str) -> Any:
    """Read one value as YAML, so that numbers, lists, true and null mean what they mean in the file."""
    try:
        return strict_yaml.parse(text)
    except yaml.YAMLError as error:
        problem = getattr(error, "problem", None) or "no YAML"
        message = f"{key[:100]}: cannot read the value {text[:100]!r}: {problem}"
        raise UsageError(message, "quote it, or write it in the file") from error


def set_dotted(values: dict[str, Any], key: str, value: Any) -> None:
    """Set ``a.b.c`` in nested mappings, which are created where they are missing."""
    *path, last = key.split(".")
    for part in path:
        inner = values.get(part)
        if not isinstance(inner, dict):
            inner = values[part] = {}
        values = inner
    values[last] = value


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested mappings as one from dotted keys to values."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        nested = isinstance(value, Mapping) and value
        flat |= flatten(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value}
    return flat


def plain(recipe: Section) -> dict[str, Any]:
    """Return the resolved recipe as plain JSON values."""
    return recipe.model_dump(mode="json", by_alias=True)


def words_of(recipe: Section) -> list[str]:
    """Return every text among the values of a recipe but its name: the paths that it names are among them."""
    texts: list[str] = []
    rest: list[Any] = [{key: value for key, value in plain(recipe).items() if key != "name"}]
    while rest:
        value = rest.pop()
        if isinstance(value, Mapping | list):
            rest.extend(value.values() if isinstance(value, Mapping) else value)
        elif isinstance(value, str):
            texts.append(value)
    return texts


def as_yaml(recipe: Section) -> str:
    """Return the resolved recipe as YAML text in the order of its definition."""
    return yaml.safe_dump(plain(recipe), sort_keys=False, allow_unicode=True)


def config_hash(recipe: Recipe) -> str:
    """Return the sha256 of the resolved recipe."""
    return hashlib.sha256(json.dumps(plain(recipe), sort_keys=True).encode()).hexdigest()


def refuse_changes(saved: Mapping[str, Any], recipe: Recipe) -> None:
    """Raise ``UsageError`` naming the first key that differs from the saved run in what is learned.

    A run of an earlier version has not said what there was no key for: it is taken at its default.
    """
    before, now = flatten(plain(check_recipe(saved, "the saved run"))), flatten(plain(recipe))
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) != now.get(key) and not key.startswith(FREE_ON_RESUME):
            message = f"--resume: {key} was {before.get(key)!r} and is now {now.get(key)!r}"
            raise UsageError(message, "take the old value, or start a new run with another --output")
