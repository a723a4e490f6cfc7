"""Where examples come from, one file each; `register` makes known what a program defines. This imports no torch."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from orrery.data.sources._source import (
        SOURCES,
        BatchRequest,
        BatchSource,
        Examples,
        HeldBack,
        Source,
        SourceSettings,
        register,
    )

__all__ = [
    "SOURCES",
    "BatchRequest",
    "BatchSource",
    "Examples",
    "HeldBack",
    "Source",
    "SourceSettings",
    "register",
]


def __getattr__(name: str) -> Any:
    """Import on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from orrery.data.sources import _source

    return getattr(_source, name)
