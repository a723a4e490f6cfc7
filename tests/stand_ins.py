"""Objects that have only what a test needs, and pass for a class where types are checked at run time."""

from types import SimpleNamespace
from typing import Any


def stand_in(kind: type[Any], **attributes: Any) -> Any:
    """Return an object with these attributes that ``isinstance`` takes for one of a class."""
    return type(kind.__name__, (SimpleNamespace,), {"__class__": property(lambda self: kind)})(**attributes)
