"""From a name or a path to an architecture, without reading a weight."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orrery.checkpoints.store import SPEC
from orrery.errors import ModelFileError, UsageError
from orrery.exchange.reading.config_keys import read_config, settled
from orrery.exchange.reading.files import CONFIG, read_json
from orrery.exchange.reading.gguf_model import spec_of_gguf
from orrery.exchange.reading.native import is_native, native_of, open_consolidated
from orrery.exchange.reading.static_folder import spec_of_table, table_in
from orrery.families import load_family, names, spec_of
from orrery.models.limits import check_numbers
from orrery.models.model import ModelSpec
from orrery.models.soundness import check_whole, describes_a_model
from orrery.nn.spec import from_json
from orrery.tuning import TRANSFORMS, Transform
from orrery.tuning import from_json as transforms_of

FAMILY, CONFIGURATION = "family", "config"
"""The keys of spec.json for the published layout that a model can be saved in."""


def published(config: Mapping[str, Any], path: Path) -> ModelSpec:
    """Return the architecture that the content of a ``config.json`` describes.

    Raises:
        ModelFileError: no family has it, or it describes nothing that can be built; ``path`` is named.
    """
    rules = load_family(config.get("model_type"))
    check_numbers(config, path)
    with describes_a_model(path):
        return check_whole(spec_of(rules, settled(config, path)[0]))


@dataclass(frozen=True)
class Described:
    """What the files of a model say of it before its weights are read.

    Attributes:
        spec: the architecture.
        transforms: what was done to the finished model, in order.
        family: the ``model_type`` that the model can be saved as, where the file names one.
        config: its configuration.
    """

    spec: ModelSpec
    transforms: tuple[Transform, ...] = ()
    family: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)


def own(path: Path) -> Described:
    """Return what a ``spec.json`` says.

    Raises:
        ModelFileError: it describes nothing that can be built.
    """
    content = read_json(path)
    with describes_a_model(path):
        check_numbers(content, path)
        transforms, family, config = (content.pop(key, None) for key in (TRANSFORMS, FAMILY, CONFIGURATION))
        if not isinstance(family, str | None) or not isinstance(config, dict | None):
            raise ModelFileError(f"{FAMILY} or {CONFIGURATION} is of another type", "a name and an object are expected")
        return Described(check_whole(from_json(content)), transforms_of(transforms or []), family, config or {})


def described(folder: Path) -> Described:
    """Return what the files of a folder say of its model, or a GGUF file of its own.

    Raises:
        ModelFileError: its file is damaged or describes nothing that can be built.
    """
    if folder.is_file():
        return Described(spec_of_gguf(folder))
    if (folder / SPEC).is_file():
        return own(folder / SPEC)
    if is_native(folder):
        native = native_of(folder, open_consolidated(folder).empty())
        family = native.config["model_type"]
        return Described(published(native.config, native.path), family=family, config=native.config)
    if (table := table_in(folder)) is not None:
        return Described(spec_of_table(table))
    return Described(published(read_config(folder), folder / CONFIG))


def of_folder(folder: Path) -> ModelSpec:
    """Return the architecture of the model in a folder, without the transforms that were done to it.

    Raises:
        ModelFileError: its file is damaged or describes nothing that can be built.
    """
    return described(folder).spec


def of_family(name: str, config: Path | None = None) -> ModelSpec:
    """Return a family's architecture, of a file like ``config.json`` or of the family's defaults.

    Where the defaults alone describe no model, because no published one has them all, it is the tiny configuration.

    Raises:
        UsageError: the file is of another family.
        ModelFileError: there is no such family, or the file describes nothing that can be built.
    """
    family = load_family(name)
    if config is None:
        with suppress(ModelFileError):
            return check_whole(family.spec({}))
        return check_whole(family.spec(family.TINY))
    content = read_json(config)
    check_numbers(content, config)
    if _plain(content.get("model_type", name)) != _plain(name):
        raise UsageError(
            f"{config} is a configuration of {content['model_type']!r}, not of {name!r}",
            "name the family that it is of",
        )
    with describes_a_model(config):
        return check_whole(spec_of(family, content))


def is_family(name: str) -> bool:
    """Say whether a word names a family; a folder of the same name is ``./name``."""
    return bool({name, _plain(name)} & set(names()))


def _plain(name: Any) -> str:
    return str(name).replace("-", "_")
