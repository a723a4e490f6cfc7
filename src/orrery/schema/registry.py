"""Parts found by name: those of the package, one file each, and those that a program registers."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import AfterValidator, BeforeValidator
from pydantic_core import PydanticCustomError

from orrery.errors import UsageError, did_you_mean
from orrery.schema.section import Section

Part = TypeVar("Part")
"""A class with ``Settings``, a section whose ``kind`` has the name as its default."""


class Registry(Generic[Part]):
    """The parts of one sort, by name.

    A name is the part's ``kind``, or the default of ``Settings.kind``. The package's own lie in the folder ``package``,
    a file each, called as the part is, and are imported when they are asked for; a folder, and a file whose name begins
    with an underscore, is no part.
    """

    def __init__(self, what: str, package: str) -> None:
        self.what, self.package = what, package
        self._parts: dict[str, type[Part]] = {}

    def register(self, part: type[Part]) -> type[Part]:
        """Make a part known under its name, and return it, so that this may stand before a class as ``@register``.

        Defining the same class of the same module again, as a notebook does, replaces it.

        Raises:
            UsageError: the part has no name, or the name is taken.
        """
        name = name_of(part)
        if not name.isidentifier():
            message = f"{part.__qualname__} has no kind, and its Settings no kind with a name as its default"
            raise UsageError(message, f'write kind: Literal["{part.__name__.lower()}"] = "{part.__name__.lower()}"')
        own, known = f"{self.package}.{name}", self._parts.get(name, part)
        taken = name in self._shipped and part.__module__ != own
        if taken or _place(known) != _place(part):
            where = own if taken else ".".join(_place(known))
            raise UsageError(f"{name} is taken: {where} is the {self.what} of this name", "choose another kind")
        self._parts[name] = part
        return part

    def names(self) -> list[str]:
        """Return all names, in alphabetical order."""
        return sorted({*self._shipped, *self._parts})

    def own(self) -> list[type[Part]]:
        """Return the parts that a program has registered, in the order of their names."""
        return [self._parts[name] for name in sorted(self._parts.keys() - self._shipped)]

    def all(self) -> list[type[Part]]:
        """Return every part, in the order of their names; the package's own are imported for it."""
        return [self.find(name) for name in self.names()]

    def find(self, name: str) -> type[Part]:
        """Return the part of a name.

        Raises:
            UsageError: there is none.
        """
        if name not in self._parts and name in self._shipped:
            importlib.import_module(f"{self.package}.{name}")
        if name not in self._parts:
            raise self.unknown(name, self.names())
        return self._parts[name]

    def unknown(self, name: str, known: Sequence[str]) -> UsageError:
        """Return the refusal of a name that no part has, with those that could have been meant."""
        message = f"there is no {self.what} called {str(name)[:100]!r}; known: {', '.join(known)}"
        own = f"a program makes its own known with {self.package}.register"
        return UsageError(message, f"{did_you_mean(name, known)}{own}")

    def class_of(self, settings: Section) -> type[Part]:
        """Return the part that settings belong to."""
        return self.find(getattr(settings, "kind", ""))

    def section(
        self, left_out: Callable[[Mapping[str, Any]], str | None] = lambda values: None, *, alone: bool = False
    ) -> BeforeValidator:
        """Return what reads a section of a recipe as the settings of the part that its ``kind`` names.

        Args:
            left_out: says the name for a section without ``kind``; by default there is none.
            alone: a name may stand alone, for a section with nothing but its ``kind``.
        """

        def read(values: Any) -> Any:
            values = {"kind": values} if alone and isinstance(values, str) else values
            if not isinstance(values, Mapping):
                return values
            name = values["kind"] if "kind" in values else left_out(values)
            if not isinstance(name, str) or name not in self.names():
                known = {"known": ", ".join(self.names())}
                raise PydanticCustomError("kind", "kind must be one of {known}", known)
            return settings_of(self.find(name)).model_validate(values)

        return BeforeValidator(read)

    def known(self) -> AfterValidator:
        """Return what refuses a name in a recipe that no part has."""

        def check(name: str) -> str:
            if name not in self.names():
                raise PydanticCustomError("kind", "must be one of {known}", {"known": ", ".join(self.names())})
            return name

        return AfterValidator(check)

    @cached_property
    def _shipped(self) -> frozenset[str]:
        """Return the names of the package's own files."""
        places = importlib.import_module(self.package).__path__
        modules = [module.name for module in pkgutil.iter_modules(places) if not module.ispkg]
        return frozenset(name for name in modules if not name.startswith("_"))


def name_of(part: type) -> str:
    """Return the name of a part: its ``kind``, or the default of ``Settings.kind``; nothing where it has none."""
    field = getattr(part, "Settings", Section).model_fields.get("kind")
    kind = getattr(part, "kind", None if field is None else field.default)
    return kind if isinstance(kind, str) else ""


def label_of(part: type) -> str:
    """Return what messages call a part: its name, or its class's where it has none."""
    return name_of(part) or part.__name__


def settings_of(part: Any) -> type[Section]:
    """Return the settings of a part."""
    settings: type[Section] = part.Settings
    return settings


def _place(part: type) -> tuple[str, str]:
    return part.__module__, part.__qualname__
