"""Transforms: changes of a finished model that keep the names of what is there and add their own tensors beside it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orrery.tuning._description import TRANSFORMS, describe, refuse_transformed, refuse_untrainable
    from orrery.tuning._linear import merge
    from orrery.tuning._registry import from_json, load_transform, names, register
    from orrery.tuning._transform import Transform

_HOMES = {
    "TRANSFORMS": "_description",
    "Transform": "_transform",
    "describe": "_description",
    "from_json": "_registry",
    "load_transform": "_registry",
    "merge": "_linear",
    "names": "_registry",
    "refuse_transformed": "_description",
    "refuse_untrainable": "_description",
    "register": "_registry",
}

__all__ = [
    "TRANSFORMS",
    "Transform",
    "describe",
    "from_json",
    "load_transform",
    "merge",
    "names",
    "refuse_transformed",
    "refuse_untrainable",
    "register",
]


def __getattr__(name: str) -> Any:
    """Import on first use: transforms need torch, and `orrery --help` must not."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
