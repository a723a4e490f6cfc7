"""Keys of a config.json that no family knows: passed over where the reference does not read them, or refused."""

import json
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from orrery.errors import ModelFileError
from orrery.exchange.reading.files import CONFIG, read_json
from orrery.exchange.reading.rounded.config import KEY, method_of
from orrery.families import Family, load_family, names, spec_of
from orrery.families import __name__ as FAMILIES
from orrery.families._config import UnknownKeysError


def read_config(folder: Path) -> dict[str, Any]:
    """Return the content of a config.json, with the ``model_type`` that files from before 2020 leave out.

    transformers goes by the name of the folder there; so does this, where ``architectures`` names no class either.

    Raises:
        ModelFileError: the file is missing or damaged, or neither tells a family.
    """
    config = read_json(folder / CONFIG)
    if config.get("model_type") is not None:
        return config
    said = config.get("architectures")
    words = [*(said if isinstance(said, list) else []), *(part for part in reversed(folder.absolute().parts))]
    for word in words:
        plain = str(word).lower().replace("-", "").replace("_", "")
        if found := max((name for name in names() if name.replace("_", "") in plain), key=len, default=None):
            return {**config, "model_type": found}
    raise ModelFileError(
        f"{folder / CONFIG} names no model_type", 'write into it what the model is: "model_type": "bert", for example'
    )


def settled(config: Mapping[str, Any], path: Path, ignored: Collection[str] = ()) -> tuple[dict[str, Any], list[str]]:
    """Return a configuration without the keys that change no number, and these keys.

    They are the keys that the reference's code of the class in ``architectures`` never takes from a configuration, as
    ``reference_keys.json`` has it from its source, and those that a caller asks to be ignored.

    Raises:
        ModelFileError: the reference reads a key that is not built; all of them are named.
    """
    if absent := sorted(set(ignored) - config.keys()):
        raise ModelFileError(
            f"{path} has no key {', '.join(repr(key[:60]) for key in absent[:10])}, which is to be left out",
            "name keys that it has, apart by blanks: --ignore-keys a b",
        )
    rules = load_family(config.get("model_type"))
    kept = {key: value for key, value in config.items() if key not in ignored}
    method_of(kept, path)  # refuses what is not read
    kept.pop(KEY, None)
    while unread := _unread(rules, kept):
        kept = {key: value for key, value in kept.items() if key not in unread}
    if read := _unknown(rules, kept):
        several = "s" if len(read) > 1 else ""
        raise ModelFileError(
            f"{path}: the key{several} {', '.join(map(repr, read))} may change numbers, and Orrery does not know what "
            f"{'they mean' if several else 'it means'}",
            f"if nothing depends on {'them' if several else 'it'}: orrery import {path.parent} NEW --ignore-keys "
            f"{' '.join(read)}",
        )
    return kept, [key for key in config if key not in kept and key != KEY]


def _unread(rules: Family, config: Mapping[str, Any]) -> set[str]:
    known = _read_by(_class_of(rules, config))
    return set() if known is None else set(_unknown(rules, config)) - known


def _unknown(rules: Family, config: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the keys that a family does not know; a part inside has its own, which are never passed over."""
    try:
        spec_of(rules, config)
    except UnknownKeysError as error:
        return tuple(key for key in error.keys if key in config)
    except Exception:
        return ()
    return ()


def _class_of(rules: Family, config: Mapping[str, Any]) -> str:
    given = config.get("architectures")
    named = given[0] if isinstance(given, list) and given else None
    return named if isinstance(named, str) and named in _record() else rules.ARCHITECTURE


def _read_by(name: str) -> set[str] | None:
    """Return the keys beyond ours that a class of the reference reads; None for a class that it does not have."""
    recorded = _record()
    return {*recorded["*"], *recorded[name]} if name in recorded else None


@cache
def _record() -> dict[str, list[str]]:
    recorded: dict[str, list[str]] = json.loads(files(FAMILIES).joinpath("reference_keys.json").read_text("utf-8"))
    return recorded
