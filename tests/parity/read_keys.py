"""Which keys of a config.json the reference reads and Orrery's family does not know: found in the reference's source.

    python tests/parity/read_keys.py    writes src/orrery/families/reference_keys.json

From the class of a model everything that it can call is followed: its bases, the classes and functions that its source
names, and the class of its configuration with what that derives from its own keys. A key is read where one of these
takes it from something that is called a configuration. Reading too many is harmless: they are refused by name.
"""

import ast
import inspect
import json
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from transformers import GenerationMixin, PreTrainedConfig, PreTrainedModel

from orrery.families import load_family, names
from orrery.families._classifier import class_beside
from orrery.families._config import UnknownKeysError
from orrery.families._heads import PURPOSES
from tests.parity.keys import written
from tests.parity.stand_ins import class_of, has

RECORD = Path(__file__).resolve().parents[2] / "src" / "orrery" / "families" / "reference_keys.json"
_COMMON = (PreTrainedModel, GenerationMixin, PreTrainedConfig)
"""What every model has: it reads keys that no number depends on, or that each family knows."""


def classes_of(family: str) -> list[str]:
    """Return the classes of the reference that a folder of a family may name."""
    own = load_family(family).ARCHITECTURE
    stem = own.removesuffix("ForMaskedLM")
    others = [class_beside(own) or "", *(f"{stem}{end}" for end in PURPOSES if stem != own)]
    return [name for name in dict.fromkeys([own, *others]) if name and has(name)]


def keys_read(architecture: str) -> set[str]:
    """Return the keys that a class of the reference reads, or may read."""
    kind = class_of(architecture)
    keys: set[str] = set()
    for part in _reached(kind):
        keys |= _from_configurations(part)
    for part in _reached(kind.config_class):
        keys |= _of_configuration(part)
    return {name for name in keys if name == name.lower() and not name.startswith("__")}


def beyond(family: str, architecture: str) -> list[str]:
    """Return the keys that a class reads and that Orrery's family refuses as unknown."""
    base = written(family, architectures=[architecture])
    rules = load_family(family)
    known = set(base)
    unknown = []
    for key in sorted(keys_read(architecture) - known):
        try:
            rules.spec({**base, key: "a value of no key"})
        except UnknownKeysError as error:
            unknown += [name for name in error.keys if name == key]
        except Exception:
            continue
    return unknown


def record() -> dict[str, list[str]]:
    """Return for each class the keys that it reads and that we do not build; those of all classes under ``*``."""
    by_class = {name: set(beyond(family, name)) for family in _families() for name in classes_of(family)}
    common = set.intersection(*by_class.values())
    return {"*": sorted(common), **{name: sorted(keys - common) for name, keys in by_class.items()}}


def _families() -> list[str]:
    return [family for family in names() if has(load_family(family).ARCHITECTURE)]


def _reached(kind: Any) -> Iterator[Any]:
    """Yield a class and all of the reference that its source can reach."""
    waiting, seen = [kind], set[Any]()
    while waiting:
        part = waiting.pop()
        if part in seen or part in _COMMON:
            continue
        seen.add(part)
        yield part
        if inspect.isclass(part):
            waiting += [base for base in part.__mro__[1:] if _theirs(base)]
        module = sys.modules[part.__module__]
        for node in ast.walk(_tree(part)):
            if isinstance(node, ast.Name):
                waiting += [one for one in _parts(getattr(module, node.id, None)) if _theirs(one)]


def _parts(value: Any) -> list[Any]:
    """Return the classes and functions that a name stands for: a table stands for all that it holds."""
    if inspect.isclass(value) or inspect.isfunction(value):
        return [inspect.unwrap(value)]
    return [one for one in value.values() if inspect.isfunction(one)] if type(value) is dict else []


_SKIPPED = ("cache_utils", "configuration_utils", "generation", "heterogeneity", "integrations", "models.auto", "utils")
"""Modules that know no family, and read of a configuration how to run it."""


def _theirs(part: Any) -> bool:
    module = getattr(part, "__module__", "")
    return module.startswith("transformers.") and not module.removeprefix("transformers.").startswith(_SKIPPED)


def _tree(part: Any) -> ast.AST:
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(part)))
    except (OSError, TypeError):
        return ast.Module([], [])


def _from_configurations(part: Any) -> set[str]:
    """Return the names that a piece of source takes from what it calls a configuration."""
    keys = set()
    for node in ast.walk(_tree(part)):
        if isinstance(node, ast.Attribute) and _is_configuration(node.value):
            keys.add(node.attr)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "hasattr"):
            texts = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
            keys |= set(texts) if _is_configuration(node.args[0]) else set()
    return keys


def _is_configuration(node: ast.AST) -> bool:
    return ast.unparse(node).removesuffix("()").endswith("config")


def _of_configuration(part: Any) -> set[str]:
    """Return what a configuration has of its own: fields, arguments, other names, and what is derived from them."""
    keys = set()
    for node in ast.walk(_tree(part)):
        if isinstance(node, ast.AnnAssign | ast.arg):
            target = node.target if isinstance(node, ast.AnnAssign) else node
            keys |= (
                {target.id} if isinstance(target, ast.Name) else {target.arg} if isinstance(target, ast.arg) else set()
            )
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            keys.add(node.attr)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            keys.add(node.value)
    return keys


def as_text(by_class: dict[str, list[str]]) -> str:
    """Return the file: a class a line."""
    lines = [f"{json.dumps(name)}: {json.dumps(keys)}" for name, keys in sorted(by_class.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    RECORD.write_text(as_text(record()))
