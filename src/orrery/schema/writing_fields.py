"""The settings of writing as fields of checked settings: of recipes, of pipelines, of requests."""

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, Field, create_model
from pydantic_core import PydanticCustomError

from orrery.errors import UsageError
from orrery.schema.numbers import NoTruth
from orrery.schema.writing import SETTINGS, UNBOUNDED, Setting

Kind = TypeVar("Kind", bound=type[BaseModel])


def with_settings(*names: str, strict: bool = False) -> Callable[[Kind], Kind]:
    """Return what adds settings to a class, each of which may be left out.

    Args:
        names: of the settings.
        strict: whether a number must be one, and no text that spells it.
    """
    fields: dict[str, Any] = {name: optional(name, strict=strict) for name in names}

    def add(kind: Kind) -> Kind:
        made = create_model(kind.__name__, __base__=kind, __module__=kind.__module__, __doc__=kind.__doc__, **fields)
        made.__qualname__ = kind.__qualname__
        return made  # type: ignore[return-value]

    return add


def optional(name: str, *, strict: bool = False) -> tuple[Any, Any]:
    """Return the annotation and the default of a setting that may be left out."""
    setting = SETTINGS[name]
    return checked(setting, strict=strict) | None, Field(None, description=setting.about.help)


def checked(setting: Setting, *, strict: bool = False) -> Any:
    """Return the annotation of a setting, whose numbers are in its range."""
    if setting.keyed:
        number = Annotated[float, Field(strict=strict, **_bounds(setting))]
        return Annotated[dict[int, number], BeforeValidator(_within(setting))]
    if not setting.number:
        return setting.type
    kinds = () if strict else (NoTruth,)
    bounds = Field(strict=strict, **_bounds(setting))
    return Annotated[(setting.type, bounds, *kinds, BeforeValidator(_within(setting)))]


def _bounds(setting: Setting) -> dict[str, Any]:
    """Return the range as schemas tell it."""
    least, most = setting.about.least, setting.about.most
    low = {} if least == -UNBOUNDED else {"gt" if setting.about.above else "ge": least}
    return low if most == UNBOUNDED else {**low, "le": most}


def _within(setting: Setting) -> Callable[[Any], Any]:
    """Return what refuses a number outside the range by the words that every door has."""

    def check(value: Any) -> Any:
        numbers = list(value.values()) if isinstance(value, dict) else [value]
        if any(isinstance(one, bool) or not isinstance(one, int | float) for one in numbers):
            return value  # pydantic says what it is instead
        try:
            setting.refuse(value)
        except UsageError as error:
            raise PydanticCustomError("range", "{said}", {"said": f"{error.message}: {error.hint}"}) from None
        return setting.plain(value)

    return check
