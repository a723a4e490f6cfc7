"""What is left out of a request is something that could have been sent."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Annotated

import pytest
from pydantic import TypeAdapter

from orrery.serving import routes, schema
from orrery.serving.routes import laws
from orrery.serving.schema.fields import Body


def bodies(of: type = Body) -> Iterator[type]:
    for kind in of.__subclasses__():
        yield kind
        yield from bodies(kind)


def test_every_default_may_be_sent() -> None:
    for package in (routes, schema):
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{package.__name__}.{module.name}")
    kinds = set(bodies())
    assert len(kinds) >= 9
    for kind in kinds:
        for name, field in kind.model_fields.items():
            default = field.get_default(call_default_factory=True) if not field.is_required() else None
            if default is not None:
                kind_of = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
                adapter = TypeAdapter(kind_of)
                assert adapter.validate_python(default, strict=False) == default, (kind.__name__, name)


def test_laws_are_those_of_the_model_where_nothing_is_said() -> None:
    assert laws.Wanted().of == "model"
    with pytest.raises(ValueError, match="model"):
        laws.Wanted(of="modelx")
