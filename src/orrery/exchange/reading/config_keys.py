"""Keys of a config.json that no family knows: passed over where the reference does not read them, or refused."""

import json
import re
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from orrery.errors import ModelFileError
from orrery.exchange.reading.files import CONFIG, read_json
from orrery.exchange.reading.rounded.config import KEY, method_of, said_plainly
from orrery.families import Family, load_family, spec_of
from orrery.families import __name__ as FAMILIES
from orrery.families._config import UnknownKeysError
from orrery.families._wholes import text_config, whole_of
from orrery.models.soundness import describes_a_model

OLD = ("albert", "bart", "bert", "camembert", "distilbert", "gpt2", "roberta", "t5")
"""Families whose first files name no ``model_type``, which came in 2020."""
_LIBRARIES = {"pretrained_cfg": "timm", "model_cfg": "open_clip"}
"""Whose configuration has such a key and no model_type."""


def read_config(folder: Path) -> dict[str, Any]:
    """Return the content of a config.json, or its text part, with the ``model_type`` that old files leave out.

    Of a model that reads pictures too, it is that of the part which reads and writes text. In files from before 2020
    the class in ``architectures`` tells the family, else a part of the folder's path that has the family for a word, as
    transformers goes by the name of the model.

    Raises:
        ModelFileError: the file is missing or damaged, or nothing tells the family.
    """
    config = said_plainly(folder, read_json(folder / CONFIG))
    if whole_of(config):
        with describes_a_model(folder / CONFIG):
            return text_config(config)
    if config.get("model_type") is not None:
        return config
    if other := next((library for key, library in _LIBRARIES.items() if key in config), None):
        hint = "take the model in the form of transformers: its config.json names a model_type"
        raise ModelFileError(f"{folder / CONFIG} describes a model of the library {other}", hint)
    classes = config.get("architectures")
    named = [str(one).lower() for one in classes] if isinstance(classes, list) else []
    found = [old for old in OLD if any(one.startswith(old) for one in named)]
    for part in () if found else reversed(folder.absolute().parts):
        found = found or [old for old in OLD if old in re.split("[^a-z0-9]+", part.lower())]
    if not found:
        hint = 'write into it what the model is: "model_type": "bert", for example'
        raise ModelFileError(f"{folder / CONFIG} names no model_type", hint)
    return {**config, "model_type": max(found, key=len)}


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
