"""What a part of an architecture is where nothing is said: a changed default would change every spec that relies on it.

``tests/data/spec_defaults.json`` is the table, by kind and field. A new part or field is a new line there.
"""

import dataclasses
import importlib
import json
import pkgutil
from pathlib import Path

import orrery.models
import orrery.nn
from orrery.nn.heads import Headless
from orrery.nn.spec import ModuleSpec, Value, to_json

TABLE = Path(__file__).parents[2] / "data" / "spec_defaults.json"


def kinds(cls):
    """Yield every class of data below a class that can be made."""
    for below in cls.__subclasses__():
        yield from kinds(below)
        if not getattr(below, "__abstractmethods__", None) and below.__module__.startswith("orrery."):
            yield below


def defaults():
    """Return the defaults of every kind's fields, as JSON has them."""
    for package in (orrery.nn, orrery.models):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    by_kind = {}
    for cls in sorted({*kinds(Value), *kinds(ModuleSpec)}, key=lambda cls: cls.kind):
        fields = {field.name: field for field in dataclasses.fields(cls)}
        given = {name: to_json(f.default) for name, f in fields.items() if f.default is not dataclasses.MISSING}
        given |= {
            name: to_json(f.default_factory())
            for name, f in fields.items()
            if f.default_factory is not dataclasses.MISSING
        }
        if given:
            by_kind[cls.kind] = given
    return by_kind


def test_every_default_is_in_the_table():
    assert json.loads(json.dumps(defaults())) == json.loads(TABLE.read_text(encoding="utf-8"))


def test_no_head_is_tied_to_nothing():
    assert Headless.Spec().tied is False
