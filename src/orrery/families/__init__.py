"""One file per model family: a function from its configuration to a spec, and the rules of its weight files."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orrery.families._registry import (
        Family,
        current_names,
        defaults_of,
        library_of,
        load_family,
        model_type,
        names,
        register,
        rules_of,
        spec_of,
    )

__all__ = [
    "Family",
    "current_names",
    "defaults_of",
    "library_of",
    "load_family",
    "model_type",
    "names",
    "register",
    "rules_of",
    "spec_of",
]


def __getattr__(name: str) -> Any:
    """Import on first use: specs need torch, and `orrery --help` must not."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from orrery.families import _registry

    return getattr(_registry, name)
